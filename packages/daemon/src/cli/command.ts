/** What every command is given, and what it gives back. */

import type { Client } from "@nexus-stream/client";
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

/** The exit code. */
export type CommandExit = Promise<number>;
