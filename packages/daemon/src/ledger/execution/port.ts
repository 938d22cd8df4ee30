/** The execution log: what happened in the runs of a session beside their words, in order, for whoever asks later how it came about. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredEntry {
	session: string;
	/** Left out: nobody's run did it. */
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
