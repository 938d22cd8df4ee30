/** The tools that come with Nexus, as the `tools:` section of the configuration asks for them. */

import { resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { EngineServices, EngineSetup } from "../entry.ts";
import { fieldsOf, type Tool, type ToolQuestion, textResult } from "../tool.ts";
import { checkToolRoot } from "./files/contained-path.ts";
import { fileTools } from "./files/files.ts";
import { FILE_BYTES_MAX } from "./files/read-file.ts";
import { bashTool, isDaemonSecret } from "./shell/bash.ts";

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

/** The paths that no tool may touch are left out when the tools are only listed. */
export interface BuiltInSetup
	extends Pick<EngineSetup, "base" | "env">,
		Partial<Pick<EngineServices, "dataDir" | "protectedFiles" | "secretFiles">> {
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

const CHOICES_MAX = 8;
const CHOICE_CHARS_MAX = 40;
const QUESTION_CHARS_MAX = 2000;

export const askTool: Tool = {
	name: "ask",
	description:
		"Asks the person a question and waits for the answer. Use it only when you cannot go on without knowing; offer choices when there are few.",
	parameters: fieldsOf(
		{
			question: { type: "string", minLength: 1, maxLength: QUESTION_CHARS_MAX },
			choices: {
				type: "array",
				items: { type: "string", minLength: 1, maxLength: CHOICE_CHARS_MAX },
				minItems: 2,
				maxItems: CHOICES_MAX,
				description: "Left out: the person answers in their own words.",
			},
		},
		"question",
	),
	describe: () => "💬 Asking you",
	asks: ({ question, choices }): ToolQuestion => ({
		question: question as string,
		choices: choices === undefined ? undefined : (choices as string[]),
	}),
	execute: async (_args, { answer }) =>
		answer?.state === "answered"
			? textResult(answer.text ?? "")
			: { ...textResult("the person gave no answer"), failed: true },
};

export const timeTool = (now: () => number): Tool => ({
	name: "time",
	description: "The current date and time in a time zone.",
	parameters: fieldsOf({
		zone: { type: "string", description: "An IANA name such as Europe/Berlin; UTC when left out." },
	}),
	execute: async ({ zone = "UTC" }) => textResult(timeIn(zone as string, now())),
});

/** `2026-03-29T14:05:09+02:00, Sunday (Europe/Berlin)` */
export function timeIn(zone: string, now: number): string {
	const field = (options: Intl.DateTimeFormatOptions, locale = "en-CA"): string => {
		try {
			return new Intl.DateTimeFormat(locale, { timeZone: zone, ...options }).format(now);
		} catch (cause) {
			throw new Error(`unknown time zone "${zone}": use an IANA name such as Europe/Berlin`, { cause });
		}
	};
	const date = field({ year: "numeric", month: "2-digit", day: "2-digit" });
	const clock = field({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
	// "GMT+02:00"; some builds write plain "GMT" for zero.
	const offset = field({ timeZoneName: "longOffset" }, "en-US").split("GMT")[1] || "+00:00";
	return `${date}T${clock}${offset}, ${field({ weekday: "long" })} (${zone})`;
}
