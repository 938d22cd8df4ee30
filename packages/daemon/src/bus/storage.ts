/**
 * The store of the Bus. The rules (offsets, sealing, visibility) are the Bus's; a store keeps, finds, and decides what two daemons
 * could both want: ids, where a link of a chain begins, who owns a log, what time it is. Every call may answer at once or later.
 */

import { NexusError, Refused } from "@nexus-stream/protocol";
import type { Query, Reading, Write } from "../std/write.ts";
import type { LogInfo, LogQuery, LogSpec } from "./port.ts";
import type { Batch } from "./reading/batch.ts";

/** A log as a store knows it. The head of a live one covers its tail; `bytes` is the size of its segments. */
export interface StoredLog extends LogInfo {
	/** The store's own number for the log. */
	id: number;
}

/** Records that become a segment: UTF-8, joined by line feeds. As bytes, because a tail has them so. */
export interface NewSegment {
	/** Offset of the first record. */
	readonly first: number;
	readonly count: number;
	readonly bytes: Uint8Array;
}

/** The share of a segment in the size of its log: a line feed for each record. */
export const segmentBytesOf = ({ bytes }: NewSegment): number => bytes.length + 1;

/** The changes of one log in one commit. */
export interface LogWrite {
	id: number;
	/** Present when the log is new. */
	create?: LogSpec | undefined;
	/** New records. */
	batch?: Batch | undefined;
	/** Present when this commit moves the log's tail (all since the last cut, `batch` included) into a segment. */
	cut?: NewSegment | undefined;
	/** This commit closes the log; then `cut` is present unless the log is empty. */
	seal?: boolean;
}

/** Commits or is refused as one: changes of stored things, and what is written to one log. */
export interface Unit {
	readonly writes: readonly Write[];
	readonly log: LogWrite | undefined;
}

export interface Commit {
	/** Which start of which daemon commits, and its number for the commit: together they identify it for good. */
	readonly node: number;
	readonly n: number;
	/** The commit was tried before with an unknown outcome: the store looks it up first. */
	readonly again: boolean;
	readonly units: readonly Unit[];
}

/** The outcome of a unit. */
export type UnitOutcome = { refused: Refused } | { base: number };

export interface Committed {
	/** The store's time, which is when its logs were created and sealed. */
	now: number;
	/** By the unit's place: why it was refused, or where a new log begins in its chain. Nothing for the others. */
	outcomes: ReadonlyMap<number, UnitOutcome>;
}

/** The connection was lost during the commit, which may be applied or not: the caller has to ask again. */
export class OutcomeUnknown extends Error {
	constructor(cause: unknown) {
		super("it is not known whether the commit was applied", { cause });
		this.name = "OutcomeUnknown";
	}
}

/** A daemon that takes part. */
export interface Joined {
	/** This start of this daemon: never used again. */
	node: number;
	now: number;
}

export interface Adopted {
	log: StoredLog;
	/** Its records that are not in a segment yet. */
	tail: Batch | undefined;
}

/** A chain and the answer to a question about stored things, of one moment. */
export interface ChainWith<T> {
	start: number;
	head: number;
	/** The last link. */
	newest?: StoredLog;
	answer: T;
}

/** One kind of log, all but some, or those that count for one. */
export type Kinds = { only: string } | { except: readonly string[] } | { countedFor: string };

/** The logs that are followed, by the store's number. It changes while the store is followed. */
export interface WantedLogs {
	readonly size: number;
	has(id: number): boolean;
	keys(): Iterable<number>;
}

/** The changes that one commit of another node made to logs. */
export interface LogChanges {
	readonly node: number;
	readonly n: number;
	/** Commits before this one were removed before they were read: what is followed has to be looked up. */
	readonly missed: boolean;
	/** All new logs, wanted or not; the head of one may be that of a later moment. */
	readonly created: readonly StoredLog[];
	/** New records of wanted logs, in order. Those of another moment may be among them, doubled or with a gap. */
	readonly grown: readonly { readonly id: number; readonly batch: Batch }[];
	/** Logs that the commit closed, wanted ones at least. */
	readonly sealed: readonly { readonly id: number; readonly head: number; readonly at: number }[];
}

/** The topics that changed; "all" when it is not known which. */
export type ChangedTopics = ReadonlySet<string> | "all";

/** Receives the commits of other nodes. */
export interface Follower {
	readonly wanted: WantedLogs;
	/** Once for each commit, and in the order of each node's commits. */
	onChange(changes: LogChanges): void;
	/** May be early, doubled or missing. A notification of the own node is not reported. */
	onNotify(topics: ChangedTopics): void;
}

export interface Following {
	/**
	 * Reads the commits that no notification came for. Called every `lookMs`: a store that is sure of its notifications may ask more rarely. Rejects
	 * when the store cannot be read; what was not read comes with the next look.
	 */
	look(): Reading<void>;
	stop(): void;
}

/** The last commit of a node, and the topics that changed since its notification before. */
export interface StoreNotification {
	readonly node: number;
	readonly n: number;
	readonly topics: ReadonlySet<string>;
}

/** The daemons that share the store. */
interface StoreMembership {
	/** Joins the store; `alone`: every earlier start is dead, because the caller holds the lock that says so. */
	join(name: string, alone: boolean): Reading<Joined>;
	/**
	 * Says that the node lives; false when it has been declared dead. The store keeps since when the node has renewed without a gap: the
	 * count starts again with a renewal that comes more than half a lease after the one before.
	 */
	renew(node: number, leaseMs: number): Reading<boolean>;
	/**
	 * Renews the node, then declares the others dead that have not been renewed for a lease, and says which. Their commits are refused from
	 * then on. None, unless the node has itself renewed without a gap for a lease: after an outage of the store all have been silent.
	 */
	expire(node: number, leaseMs: number): Reading<readonly number[]>;
	/** The node has made its last commit: it is dead from now on, and what it owned is left. */
	leave(node: number): Reading<void>;
	/** Notifies the other nodes of what was committed before. The Bus has one such call under way at a time, and only in a shared store. */
	notify(notification: StoreNotification): Reading<void>;
	/** Follows the commits of all nodes but this one, from now on. Only in a shared store, or once the node is dead. */
	follow(node: number, follower: Follower): Following;
}

interface StoreWriting {
	/** Ids that are given out once: the first of `count` in a row. */
	reserve(count: number): Reading<number>;
	/**
	 * All units in one transaction. A refused unit leaves nothing behind and does not touch the others. Fails as a whole when nothing was
	 * applied, and with `OutcomeUnknown` when that is not certain. The same commit tried again is applied once. The units are the store's until
	 * it has answered, and not after: they are filled again for the next commit.
	 */
	commit(commit: Commit): Reading<Committed>;
	/** Makes the node the owner of a live log whose owner is dead. Refused while that lives. */
	adopt(log: string, node: number): Reading<Adopted>;
}

interface StoreReading {
	find(log: string): Reading<StoredLog | undefined>;
	/** Records from the offset on, out of the segment or the tail that holds it. */
	read(id: number, offset: number): Reading<Batch | undefined>;
	/** The first link with records after the chain offset, or the live one that will have them. */
	link(chain: string, after: number): Reading<StoredLog | undefined>;
	/** Chain offsets in (start, head] can be read; `start` moves on when links are removed and never back. */
	chain(chain: string): Reading<{ start: number; head: number } | undefined>;
	/** Both in one read transaction: whatever commits meanwhile is in all of it or in nothing of it. A chain that is not there is empty. */
	chainWith<T>(chain: string, query: Query<T>): Reading<ChainWith<T>>;
	list(query: LogQuery): Reading<StoredLog[]>;
}

interface StoreRemoval {
	/** The log that has been sealed the longest, of these kinds; any sealed one of those that count for one. */
	oldestSealed(kinds: Kinds): Reading<StoredLog | undefined>;
	/** The size of all logs, or of those that count for one. */
	totalBytes(countedFor?: string): Reading<number>;
	/** Removes a part of a sealed log; true when nothing is left of it. After the first call the log is not found any more. */
	removeSome(id: number): Reading<boolean>;
	/** Frees some of what cut logs no longer need; says whether there is more, and which of the node's logs hold space back. */
	tidy(node: number): Reading<{ more: boolean; lagging: ReadonlySet<number> }>;
}

export interface Storage extends StoreMembership, StoreWriting, StoreReading, StoreRemoval {}

// The refusals of a store, the same in every implementation.

export const fenced = (): Refused =>
	new Refused(
		"fenced",
		"another daemon has taken over what this one owned; stop this one, or let it serve readers only",
	);

/** A living daemon has it; that changes when its work ends, or it dies. */
export class OwnedByAnother extends Refused {
	constructor(message: string) {
		super("conflict", message);
	}
}

export const ownedByAnother = (log: string): Refused =>
	new OwnedByAnother(`log ${log} is written by another daemon, which is alive`);

export const noLiveLog = (log: string): NexusError => new NexusError("not_found", `no live log ${log}`);

export const existsAlready = (log: string): Refused => new Refused("duplicate", `log ${log} exists already`);

export const linkUnsealed = (chain: string): Refused =>
	new OwnedByAnother(`the last log of ${chain} is not sealed yet; a restart recovers a log without a writer`);

export const beyond = (name: string, after: number, head: number) =>
	new NexusError("invalid", `offset ${after} is beyond the end of ${name}, which is at ${head}`);
