/** How a command is declared, and what its code is given. */

import type { Client } from "@nexus-stream/client";
import { type Command, InvalidArgumentError } from "commander";
import type { WhereOptions } from "./client.ts";
import type { Host } from "./host.ts";
import type { Terminal } from "./terminal.ts";

export interface Local {
	host: Host;
	terminal: Terminal;
}

/** For a command that talks to the daemon. */
export interface CommandContext extends Local {
	client: Client;
	/** The flags that name the daemon. */
	where: WhereOptions;
}

export interface JsonOption {
	json?: boolean;
}

/** Options of a command that lists rows: the texts choose which. */
export type ListOptions<Names extends string = never> = JsonOption & { limit: number } & Partial<Record<Names, string>>;

/** The exit code; a command that returns none exits with 0. */
type Exit = Promise<number | undefined> | Promise<void>;

/** By name: each gives a command its arguments, options and code. Its description is in the table of all commands. */
export type Declarations = Readonly<Record<string, (command: Command, local: Local) => void>>;

/** The action of a command that talks to the daemon. Commander passes the arguments, then the options, then the command itself. */
export const withDaemon =
	<Args extends unknown[]>(local: Local, code: (context: CommandContext, ...args: Args) => Exit) =>
	async (...args: Args): Promise<void> => {
		const { clientFor } = await import("./client.ts");
		const where = args.at(-2) as WhereOptions;
		local.host.exitCode = (await code({ ...local, where, client: clientFor(local.host, where) }, ...args)) || 0;
	};

/** The action of a command that needs no daemon. */
export const onThisMachine =
	<Args extends unknown[]>(local: Local, code: (local: Local, ...args: Args) => Exit) =>
	async (...args: Args): Promise<void> => {
		local.host.exitCode = (await code(local, ...args)) || 0;
	};

/** The options that say where the daemon is. */
export const remote = (command: Command): Command =>
	command
		.option("--url <url>", "the daemon's address (NEXUS_URL; default: the daemon of the data directory)")
		.option("--token <token>", "its access token (NEXUS_TOKEN; default: the one in the data directory)")
		.option("--data <dir>", "its data directory (NEXUS_DATA; default ./.nexus)")
		.option("--config <file>", "its configuration (NEXUS_CONFIG)");

/** The same, for a command that can print JSON. */
export const remoteJson = (command: Command, what = "print it as JSON"): Command =>
	remote(command).option("--json", what);

/** For a command that shows frames. */
export const remoteFrames = (command: Command): Command => remoteJson(command, "print the frames as NDJSON");

/** For a command that lists rows. */
export const remoteRows = (command: Command): Command => remoteJson(command, "one JSON object a line");

export const wholeNumber = (text: string): number => {
	if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Not a whole number.");
	return Number(text);
};

/** The values of an option that may be repeated. */
export const each = (value: string, earlier: string[] = []): string[] => [...earlier, value];
