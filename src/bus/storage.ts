/** What the Bus asks of a store. The rules (offsets, sealing, chains, visibility) are the Bus's; a store only keeps and finds. */

import type { Write } from "../std/write.ts";
import type { Batch } from "./batch.ts";
import type { LogInfo, LogQuery, LogSpec } from "./port.ts";

/** A log as a store knows it: `head` and `bytes` cover what is in segments. */
export interface StoredLog extends LogInfo {
	/** The store's own number for the log. */
	id: number;
}

/** What one commit makes durable for one log. */
export interface LogWrite {
	id: number;
	/** Present when the log is new. */
	create?: { spec: LogSpec; base: number; createdAt: number };
	/** New records. */
	batch?: Batch | undefined;
	/** Present when this commit moves the log's tail (all since the last cut, `batch` included) into a segment. */
	cut?: { batch: Batch; bytes: number };
	/** Present when this commit closes the log; then `cut` is present unless the log is empty. */
	sealedAt?: number;
}

/** Applies writes inside the commit; when one is refused, only these are undone and the cause is returned. */
export type Attempt = (writes: readonly Write[]) => { cause: unknown } | undefined;

export interface Opened {
	/** The highest log number that anything in the store still belongs to: a new log must not be taken for an old one. */
	lastId: number;
	/** The size of all segments. */
	totalBytes: number;
	/** Live logs, each with the records that are not in a segment yet. */
	live: { log: StoredLog; tail: Batch | undefined }[];
}

export interface Storage {
	/** What was left by the process before this one. */
	open(): Opened;
	/** Asks for the writes inside one transaction; all of it is durable when this returns, none when it throws. */
	commit(work: (attempt: Attempt) => readonly LogWrite[]): void;
	find(log: string): StoredLog | undefined;
	/** The segment that holds the offset. */
	segment(id: number, offset: number): Batch | undefined | Promise<Batch | undefined>;
	/** The first sealed link with records after the chain offset. */
	link(chain: string, after: number): StoredLog | undefined;
	/** Chain offsets in (start, head] are in sealed links; `start` moves on when links are removed and never back. */
	chain(chain: string): { start: number; head: number } | undefined;
	list(query: LogQuery): StoredLog[];
	/** The log that has been sealed the longest. */
	oldestSealed(): StoredLog | undefined;
	/** Removes a part of a sealed log; true when nothing is left of it. After the first call the log is not found any more. */
	removeSome(id: number): boolean;
	/** Frees some of what cut logs no longer need; says whether there is more, and which logs' uncut tails hold space back. */
	tidy(): { more: boolean; lagging: ReadonlySet<number> };
}
