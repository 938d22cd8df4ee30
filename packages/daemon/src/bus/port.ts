/** The Bus: everything that streams is a log. This is the port; its rules are in PROTOCOL §4. */

import type { LogKind } from "@nexus-stream/protocol";
import type { Query, Write } from "../std/write.ts";
import type { Batch } from "./reading/batch.ts";

/** The name of a log and how it is declared. Logs of one chain follow one another: a chain is read as one log. */
export interface LogSpec {
	log: string;
	kind: LogKind;
	/** The chain this log is the next link of (`session:<label>`). The link before must be sealed. */
	chain?: string;
	/** Facts for recovery and listing; a JSON value. */
	meta?: unknown;
	/** In whose share of the store its bytes count. */
	countedFor?: string;
}

export interface LogInfo extends LogSpec {
	/** Offset of the last visible record; 0 = empty. */
	head: number;
	/** Where the log begins in its chain: chain offset = base + offset. */
	base: number;
	bytes: number;
	createdAt: number;
	/** Undefined while the log is live. */
	sealedAt?: number;
	/** Why records at its end are missing, found when the store was opened. */
	damaged?: string;
}

/** Commits together with a record, or not at all: a turn must be saved before its final frame is visible (I5). */
export interface Together {
	/** Changes of stored things. When one of them is refused, all of it is, with `Refused`. */
	with?: readonly Write[];
	/**
	 * A store that refuses commits is waited for as long as the limit says, or not longer than this; so is one that does not answer. What
	 * is in a commit under way waits on: it may have been applied.
	 */
	patienceMs?: number;
}

/** The one writer of a live log. */
export interface LogWriter {
	readonly log: string;
	/** Offset of the last appended record, durable or not. */
	readonly offset: number;
	/** Visible once the tick's commit is durable (I1). Throws when the log is sealed or a commit failed. */
	append(record: string): void;
	/** Appends records that commit together with changes of stored things; resolves with the offset of the last, once they are durable. */
	appendWith(records: readonly string[], writes: readonly Write[]): Promise<number>;
	/** More is waiting than one commit should hold: `await room()` before the next append. */
	readonly crowded: boolean;
	/** It is not crowded any more. */
	room(): Promise<void>;
	/** Everything appended so far is durable and visible. */
	flushed(): Promise<void>;
	/**
	 * Appends the last records, together with the writes, and closes the log for good. When patience ends first, as in `Together`, the
	 * log is open as it was before.
	 */
	seal(records: readonly string[], writes?: readonly Write[], patienceMs?: number): Promise<void>;
}

export type LogSource = { log: string } | { chain: string };

/** A log that grew, as a wake names it: the same object for all who follow the log. */
export interface Grown {
	/** Durable and visible up to here. */
	readonly head: number;
	readonly sealedAt: number | undefined;
	/** The batch that became visible last. Undefined when it would not be at hand later, so that each reader has to ask the store. */
	readonly newest: Batch | undefined;
}

/** Called when something became visible, or the log ended; with the log, when it is known which one. */
export type Wake = (log?: Grown) => void;

export type WakeAll = (wakes: Iterable<Wake>, log?: Grown) => void;

/** A consumer: a position in a log that pulls. A slow one is merely further behind (I6). */
export interface Cursor {
	/** Offset of the last record handed out. */
	readonly offset: number;
	/** The source is sealed and everything has been handed out. Never true for a chain. */
	readonly ended: boolean;
	/** The next durable records, `undefined` when there are none yet. A promise only when the store has to be read. */
	next(): Batch | undefined | Promise<Batch | undefined>;
	/** Throws what `next` would throw now (`data_loss`, `expired`), and takes nothing: before a first byte is sent (I9). */
	check(): void | Promise<void>;
	/** Called when `next` may have more, or the end was reached. One listener; never called from inside `next`. */
	onWake(listener: Wake): void;
	close(): void;
}

export interface LogQuery {
	kind?: LogKind;
	chain?: string;
	live?: boolean;
	/** Live logs whose owner is dead: what recovery has to end. */
	orphaned?: boolean;
	/** Newest first, at most this many. */
	limit?: number;
	/** Only logs created before this one. */
	before?: string;
}

/** A chain without a log is empty. */
export interface ChainInfo<T> {
	start: number;
	head: number;
	newest?: LogInfo;
	answer: T;
}

export interface Retention {
	/** Finished logs older than this go. */
	ageMsMax?: number;
	/** Oldest finished logs go until all logs together are below this, whatever their kind. */
	totalBytesMax?: number;
	/** Kinds with an age of their own, in place of `ageMsMax`. */
	kinds?: Partial<Record<LogKind, { ageMsMax: number }>>;
}

interface LogWriting {
	/** Creates a log with its first records; resolves once they are durable. */
	create(spec: LogSpec, records: readonly string[], together?: Together): Promise<LogWriter>;
	/** Changes of stored things that need no record: one unit of the next commit, in the order of calls. Rejects with `Refused`. */
	write(writes: readonly Write[], patienceMs?: number): Promise<void>;
	/**
	 * The writer of a log whose owner died, or that the store gave up: continues after its last durable record. A log that another daemon is still
	 * writing is a `conflict`.
	 */
	reopen(log: string): Promise<LogWriter>;
}

interface LogReading {
	/** Reads strictly after an offset, then follows (I4). Rejects with `not_found`, `expired` or `invalid` (after > head). */
	cursor(source: LogSource, after: number): Promise<Cursor>;
	describe(log: string): Promise<LogInfo | undefined>;
	/** First and last readable position of a chain: records in (start, head] can be read. */
	describeChain(chain: string): Promise<{ start: number; head: number } | undefined>;
	/**
	 * A chain with its newest log, and the answer to a question about stored things, of one moment: a log that is sealed with a write is
	 * sealed here exactly when the answer knows the write. As the store has it, which this daemon may hear of later.
	 */
	describeChainWith<T>(chain: string, query: Query<T>): Promise<ChainInfo<T>>;
	list(query?: LogQuery): Promise<LogInfo[]>;
}

interface LogRemoval {
	/** The size of all logs that count for one. */
	bytesOf(countedFor: string): Promise<number>;
	/** Removes all finished logs that count for one; returns how many. */
	removeOf(countedFor: string): Promise<number>;
	/** Removes finished logs by age and total size, in small steps; returns how many. */
	retain(rules: Retention): Promise<number>;
}

/** Whether this daemon may act outside the store. Others take over what it owns once its lease has ended, so it stops acting before. */
export interface Lease {
	/** False once most of the lease has passed without an answered renewal, and once the daemon is fenced. Always true for a daemon that is alone. */
	readonly isHeld: boolean;
	/** The time since the last answered renewal was sent, by this daemon's own clock. */
	readonly silentMs: number;
	/** Resolves when the lease is held; not any more once the daemon is fenced. */
	held(): Promise<void>;
	/** Calls back when the lease has lapsed; returns how to stop it. */
	onLapse(listener: () => void): () => void;
}

/** The daemons that share the store. */
interface Membership {
	/** Calls the listeners of the topic, in any daemon: what it is about is on record already. A call may be lost, then it comes later. */
	call(topic: string): Promise<void>;
	/** Calls back on every call of the topic and, in a shared store, now and then without one. Returns how to stop it. */
	listen(topic: string, listener: () => void): () => void;
	/**
	 * Declares the daemons dead that have not said for a lease that they live, and says which: their commits are refused, and what they owned is
	 * left. None, unless this one has said so without a gap for as long.
	 */
	expire(leaseMs: number): Promise<readonly number[]>;
	readonly lease: Lease;
	/** Other daemons may use the store, too. */
	readonly isShared: boolean;
	/** Which start of which daemon this is, in the store's count. */
	readonly node: number;
	/** The store's time: what is compared between daemons is compared by it. */
	now(): number;
	/** Aborts when another daemon has taken over what this one owned: nothing can be written here any more (ST19). */
	readonly fenced: AbortSignal;
}

export interface Bus extends LogWriting, LogReading, LogRemoval, Membership {
	/** False while commits fail (a full disk): what was appended waits and is tried again. */
	readonly healthy: boolean;
	/** Counters since start. */
	readonly stats: { records: number; bytes: number; commits: number; cursors: number; liveLogs: number };
	/** Commits what waits, in the tick of the call: for a process that has to end. Not from inside a wake, which is a part of a commit. */
	flush(): void;
	/** Commits what waits, ends the cursors, releases the store. */
	close(): Promise<void>;
}
