/** The tools that come with Nexus, as the `tools:` section of the configuration asks for them. */

import { resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { EnvironmentVariables } from "../environment.ts";
import { askTool } from "./ask.ts";
import { bashTool, isDaemonSecret } from "./bash.ts";
import { fileTools } from "./files.ts";
import type { Tool } from "./port.ts";
import { checkToolRoot } from "./protect.ts";
import { FILE_BYTES_MAX } from "./read-file.ts";
import { timeTool } from "./time.ts";

/** The `tools:` section. Everything may be left out; `docs/tools.md` has the defaults. */
export interface ToolsConfig {
	/** Files are read and written below it, and commands run in it; without it there are neither. */
	root?: string;
	fileBytesMax?: number;
	bash?: BashConfig;
	/** By tool: what people read while it runs; `{name}` stands for an argument. */
	describe?: Readonly<Record<string, string>>;
	/** By tool: of those that a message asks for, higher starts earlier. */
	priority?: Readonly<Record<string, number>>;
}

export interface BashConfig {
	enabled?: boolean;
	/** A program that confines the shell, with its arguments. */
	wrapper?: string[];
	/** Names of further variables that commands see. */
	env?: string[];
	outputBytesMax?: number;
}

export const OUTPUT_BYTES_MAX = 32 * 1024;

export interface BuiltInSetup {
	/** Relative paths start here. */
	base: string;
	env: EnvironmentVariables;
	/** What no tool may touch; left out when the tools are only looked at. */
	dataDir?: string;
	protectedFiles?: readonly string[];
	secretFiles?: readonly string[];
	clock: Clock;
}

/** Configuration mistakes are said here. */
export async function builtInTools(config: ToolsConfig = {}, place: BuiltInSetup): Promise<Tool[]> {
	const tools = [timeTool(() => place.clock.now()), askTool];
	const { root: configured, bash = {} } = config;
	if (configured === undefined) {
		if (bash.enabled)
			throw new NexusError("config", "`tools.bash` needs `tools.root`, the folder in which commands run");
		return tools;
	}
	const root = resolve(place.base, configured);
	await checkToolRoot(root, "tools.root", place.dataDir);
	const { protectedFiles = [], secretFiles = [] } = place;
	const { fileBytesMax = FILE_BYTES_MAX } = config;
	tools.push(...fileTools({ root, fileBytesMax, protectedFiles, secretFiles }));
	if (bash.enabled) tools.push(shellOf(bash, root, place));
	return tools;
}

function shellOf(bash: BashConfig, root: string, { env, clock }: BuiltInSetup): Tool {
	const { wrapper = [], env: envNames = [], outputBytesMax = OUTPUT_BYTES_MAX } = bash;
	const secret = envNames.find(isDaemonSecret);
	if (secret !== undefined)
		throw new NexusError(
			"config",
			`\`tools.bash.env\` names ${secret}, which commands never get: take it off the list`,
		);
	return bashTool({ root, env, envNames, wrapper, outputBytesMax, clock });
}
