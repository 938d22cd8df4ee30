/** The `nexus` command as a function of the process it runs in. */

import { exitCodeOf } from "@nexus-stream/protocol";
import { Command, CommanderError } from "commander";
import { packageVersion } from "../runtime/runtime.ts";
import type { Local } from "./command.ts";
import { addCommands } from "./commands.ts";
import type { Host, OutputStream } from "./host.ts";
import { createTerminal, endOnClosedPipe, reportFailure } from "./terminal.ts";

export { systemClock } from "@nexus-stream/protocol/clock";

/** `process` is the host of the real command. */
export function createProgram(host: Host) {
	const local: Local = { host, terminal: createTerminal(host.stdout, host.stderr, host.env) };
	const nexus = nexusCommand(host);
	return {
		/** Runs a command line; leaves the exit code of the table in the host's `exitCode`. */
		async run(argv: readonly string[]): Promise<void> {
			await addCommands(nexus, local, argv.slice(2));
			endOnClosedPipe(host);
			try {
				await nexus.parseAsync(argv);
			} catch (cause) {
				// Commander has already printed the problem; showing help or the version is not a failure.
				if (cause instanceof CommanderError) host.exitCode = cause.exitCode === 0 ? 0 : exitCodeOf("invalid");
				else host.exitCode = reportFailure(cause, local.terminal, host.env);
			}
		},
	};
}

const HELP_COLUMNS = 80;

const widthOf = ({ isTTY, columns }: OutputStream) => (isTTY && columns) || HELP_COLUMNS;

const nexusCommand = ({ stdout, stderr }: Host): Command =>
	new Command("nexus")
		.description("Carries an AI agent's answer, live and exactly once, from the model to wherever a person reads it.")
		.configureHelp({ showGlobalOptions: false, sortSubcommands: false })
		.version(packageVersion(), "-v, --version", "print the version")
		.exitOverride()
		.configureOutput({
			writeOut: (text) => stdout.write(text),
			writeErr: (text) => stderr.write(text),
			getOutHelpWidth: () => widthOf(stdout),
			getErrHelpWidth: () => widthOf(stderr),
			outputError: (text, write) => write(text.replace(/^error: /, "nexus: ")),
		})
		.addHelpText(
			"after",
			`
Examples:
  nexus up                           start the daemon, at http://127.0.0.1:7777
  nexus send "What is a log?"        ask, and read the answer as it comes
  cat error.log | nexus send -       read the message from a pipe
  nexus tail work                    follow the session "work"
  nexus replay run_01JD… --speed 4   replay a run, four times as fast
  nexus adapter add telegram         connect a chat platform
  nexus doctor                       find out what is wrong, and what to do

Exit codes: 0 done, 1 internal error, crash, or doctor found a problem, 2 bad
request, 3 wrong or missing token, 4 not found, 5 conflict, 6 busy, 7 daemon or
platform not reachable, 8 the agent failed, 9 timed out, 10 damaged data,
78 wrong configuration, 130 stopped.`,
		);
