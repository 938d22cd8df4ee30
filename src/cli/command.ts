/** What every command is given, and what it gives back. */

import type { Client } from "./client.ts";
import type { Host } from "./host.ts";
import type { Terminal } from "./terminal.ts";

export interface Local {
	host: Host;
	terminal: Terminal;
}

/** For a command that talks to the daemon. */
export interface Context extends Local {
	client: Client;
}

/** The exit code. */
export type Outcome = Promise<number>;

/** A run as the API spells it. */
export interface RunJson {
	run_id: string;
	session: string;
	engine: string;
	status: "running" | "stopping" | "completed" | "aborted" | "failed";
	reason?: string;
	error?: { code: string; message: string };
	started_at: number;
	ended_at?: number;
	first_token_ms?: number;
	usage?: { input: number; output: number };
	messages: { role: "user" | "assistant"; text: string; attachments?: { name: string; bytes: number }[] }[];
	tool_calls: { name: string; status: string; summary?: string; started_at: number; ended_at?: number }[];
	/** How the message came to be a run, once it has settled. */
	trace?: {
		channel: string;
		account: string;
		sender: string;
		stages: { stage: string; ms: number }[];
		hooks: { plugin: string; hook: string; ms: number; outcome: string; detail?: string }[];
		deliveries: string[];
	};
	frames_available: boolean;
}
