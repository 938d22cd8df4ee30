/** The execution log: the events of a session's runs apart from their text, in order. It explains afterwards how an answer came about. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredEntry {
	session: string;
	/** Left out: the event does not belong to a run. */
	runId?: string;
	/** In milliseconds since the epoch. */
	at: number;
	kind: string;
	agent?: string;
	/** For people. */
	text: string;
	/** JSON. */
	data?: Readonly<Record<string, unknown>>;
}

export interface ExecutionQuery {
	session: string;
	runId?: string | undefined;
	limit: number;
	/** Only entries before this one. */
	before?: number | undefined;
}

export interface StoredExecution {
	/** The newest ones, newest first, each with its number. */
	list(query: ExecutionQuery): Reading<(StoredEntry & { id: number })[]>;
	/** Whether there are any from before a time. */
	isOlder(before: number): Reading<boolean>;
}

export interface ExecutionOps {
	add(entries: readonly StoredEntry[]): void;
	/** Forgets the oldest of those from before a time, at most so many. */
	forget(before: number, entriesMax: number): void;
}

export const executionWrites = writesOf<ExecutionOps>("execution", ["add", "forget"]);
