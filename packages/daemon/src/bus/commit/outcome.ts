/** The limits of the group commit, what it reports to the Bus, and what happens while the store refuses it. */

import { NexusError, Refused, wordsOf } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { isStoreFull } from "../../std/store-failure.ts";
import type { CommitPart, LiveLog } from "../logs/live-log.ts";
import type { Committed, Storage } from "../storage.ts";

export interface CommitLimits {
	/** So many logs with something new are committed at once, before the tick has ended. */
	commitLogsMax: number;
	/** Characters that one commit holds of all logs together; what is beyond goes with the next one. */
	commitTotalCharsMax: number;
	/** A log's tail becomes a segment at this size: the larger one as long as few logs are live … */
	segmentCharsMax: number;
	segmentCharsMin: number;
	/** … and a smaller one when the tails of all of them would be more than this. */
	tailBytesMax: number;
	/** How long a failing commit is tried again before what waits is given up, and how often. */
	commitRetryMsMax: number;
	commitRetryMs: number;
	/** A store that has not answered for so long counts as failing. */
	silentMsMax: number;
	/** How often old journal space is freed. */
	tidyMs: number;
}

/** At which size a tail becomes a segment: every log gets its share of what all of them may hold. */
export const segmentCharsOf = (limits: CommitLimits, liveLogs: number): number =>
	Math.min(limits.segmentCharsMax, Math.max(limits.segmentCharsMin, limits.tailBytesMax / liveLogs));

/** The Bus, as the group commit reports to it. */
export interface CommitListener {
	/** A creation was refused, or the log was sealed: it is not live any more. */
	gone(log: LiveLog): void;
	/** The log has so many bytes more in segments. */
	cut(log: LiveLog, bytes: number): void;
	/** After all logs of the commit are in their new state. `isNew`: it was created by this commit. */
	visible(log: LiveLog, records: number, isNew: boolean): void;
	/** After that: all of the commit with this number but the refused units is durable. */
	landed(n: number, parts: readonly CommitPart[], outcomes: Committed["outcomes"]): void;
	live(): Iterable<LiveLog>;
	readonly liveLogs: number;
	/** The store's time, as of the last commit. */
	time(now: number): void;
	/** Another daemon has taken over: nothing can be written here any more. */
	fenced(): void;
}

export interface CommitterParts {
	storage: Storage;
	limits: CommitLimits;
	outcome: CommitListener;
	/** The number of this daemon in the store. */
	node(): number;
	clock: Clock;
	log: Log;
}

interface StoreOutageParts {
	limits: Pick<CommitLimits, "commitRetryMs" | "commitRetryMsMax">;
	clock: Clock;
	log: Log;
	/** Makes the next attempt. */
	retry(): void;
}

/** An outage of the store: since when it refuses commits, and when the next attempt is due. */
export class StoreOutage {
	readonly #parts: StoreOutageParts;
	/** The length of an outage does not depend on what the clock is set to meanwhile. */
	readonly now: () => number;
	#since: number | undefined;
	#isDiskFull = false;
	#cancelRetry: (() => void) | undefined;

	constructor(parts: StoreOutageParts) {
		this.#parts = parts;
		this.now = elapsing(parts.clock);
	}

	get isOn(): boolean {
		return this.#since !== undefined;
	}

	/** A full disk takes empty commits, so they show nothing. */
	get isDiskFull(): boolean {
		return this.#isDiskFull;
	}

	/** How long commits have been failing; since `from` if they have not. */
	ms(from = this.now()): number {
		return this.now() - (this.#since ?? from);
	}

	begin(cause: unknown): void {
		this.#since ??= this.now();
		this.#isDiskFull = isStoreFull(cause);
	}

	end(): void {
		if (this.#since === undefined) return;
		this.#parts.log.info({}, "the store takes commits again");
		this.#since = undefined;
	}

	/** Schedules an attempt; false when the outage has lasted too long, unless there `must` be one. */
	retryLater(isLast: boolean, must: boolean): boolean {
		const { limits, clock, retry } = this.#parts;
		if (this.#since === undefined) return false;
		const isOver = this.ms() >= limits.commitRetryMsMax || isLast;
		if (!isOver || must) {
			this.cancelRetry();
			this.#cancelRetry = clock.after(limits.commitRetryMs, retry, "due");
			return true;
		}
		this.#since = undefined;
		return false;
	}

	cancelRetry(): void {
		this.#cancelRetry?.();
		this.#cancelRetry = undefined;
	}
}

/** The store was asked, and no answer comes. */
export class Silent extends Error {
	constructor() {
		super("the store does not answer");
		this.name = "Silent";
	}
}

/** The error of a caller whose write the store does not take. */
export function unwritten(what: string, cause: unknown): NexusError {
	if (cause instanceof Refused) return cause;
	const why = isStoreFull(cause) ? "the disk is full or failing. Free some space, then try again" : shownWords(cause);
	return new NexusError("unavailable", `${what} could not be written: ${why}`, { cause });
}

/** A failure of the operating system names the path that it happened at, which is nothing for clients. */
const shownWords = (cause: unknown): string =>
	cause instanceof Error && "syscall" in cause && "code" in cause
		? `the store failed (${String(cause.code)})`
		: wordsOf(cause);
