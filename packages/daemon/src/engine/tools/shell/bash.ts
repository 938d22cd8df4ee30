/** The tool `bash`: approving a command trusts it with everything that the daemon's user may do. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { EnvironmentVariables } from "../../entry.ts";
import type { Tool } from "../../tool.ts";
import { runCommand } from "./command.ts";

export interface BashOptions {
	root: string;
	/** Left as it is but for the names that are let through. */
	env: EnvironmentVariables;
	/** Names of further variables. */
	envNames: readonly string[];
	wrapper: readonly string[];
	outputBytesMax: number;
	clock: Clock;
}

/** Variables that programs need for paths and language; no secrets. */
const ENV_NAMES: readonly string[] = [
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"SHELL",
	"LANG",
	"LANGUAGE",
	"LC_ALL",
	"LC_CTYPE",
	"TZ",
	"TMPDIR",
];

export const COMMAND_MS = 30_000;
const COMMAND_CHARS_MAX = 32_768;
/** A loop gives a tool a second to let go. */
const KILL_GRACE_MS = 300;

/** The variables that a command sees. */
export function commandEnvironment(env: EnvironmentVariables, names: readonly string[]): Record<string, string> {
	const passed = [...ENV_NAMES, ...names].flatMap((name): [string, string][] => {
		const value = env[name];
		return value === undefined || isDaemonSecret(name) ? [] : [[name, value]];
	});
	return { ...Object.fromEntries(passed), TERM: "dumb" };
}

/** Names that a command never gets, whatever the configuration says. */
export const isDaemonSecret = (name: string): boolean => /^NEXUS_/i.test(name) || /_API_KEY$/i.test(name);

export function bashTool({ root, env, envNames, wrapper, outputBytesMax, clock }: BashOptions): Tool {
	return {
		name: "bash",
		description:
			"Runs a shell command in the configured folder, without input, and answers with what it printed and its exit code. Whatever it started ends with it.",
		parameters: {
			type: "object",
			properties: { command: { type: "string", minLength: 1, maxLength: COMMAND_CHARS_MAX } },
			required: ["command"],
			additionalProperties: false,
		},
		timeoutMs: COMMAND_MS,
		exclusive: true,
		approval: "always",
		async execute({ command }, { signal }) {
			if (signal.aborted) throw new Error("stopped before it began");
			const { output, exitCode, endedBy, stopped } = await runCommand(command as string, {
				cwd: root,
				env: commandEnvironment(env, envNames),
				wrapper,
				outputBytesMax,
				killGraceMs: KILL_GRACE_MS,
				signal,
				clock,
			});
			const how = stopped ? "stopped" : exitCode === null ? `ended by ${endedBy}` : `exit code ${exitCode}`;
			const shown = output === "" ? "(no output)" : output.replace(/\n$/, "");
			return { content: [{ type: "text", text: `${shown}\n[${how}]` }], failed: stopped || exitCode !== 0 };
		},
	};
}
