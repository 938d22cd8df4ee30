/** The options of a Bus, and its limits with their defaults (I11). */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Write } from "../std/write.ts";
import type { CommitLimits } from "./commit/outcome.ts";
import type { FollowLimits } from "./foreign-commits.ts";
import type { MembershipLimits } from "./membership.ts";
import type { Bus, LogSpec } from "./port.ts";
import type { Storage } from "./storage.ts";

/** Changes of stored things that commit as one. */
export interface Changes {
	readonly writes: readonly Write[];
	/** The log whose records they commit with, if any. */
	readonly log?: LogSpec | undefined;
	/** The log begins with them. */
	readonly isNew?: boolean;
}

/** Records of changes, as further changes of the same unit. Pure but for the clock: for a unit that is tried again they are made again. */
export type Tell = (changes: Changes) => readonly Write[];

export interface BusOptions {
	storage: Storage;
	/** The name of this daemon in the store. */
	name?: string;
	/** Other daemons use the store too. Without it, every earlier start counts as dead: this daemon holds the store's lock. */
	shared?: boolean;
	limits?: Partial<BusLimits>;
	/** Asked for every unit with changes, and for every new log. */
	tell?: Tell;
	clock: Clock;
	log: Log;
}

/** The changes, followed by the records of them. */
export function withTellWrites(tell: Tell | undefined, changes: Changes): readonly Write[] {
	const { writes, isNew = false } = changes;
	if (!tell || (writes.length === 0 && !isNew)) return writes;
	const told = tell(changes);
	return told.length === 0 ? writes : [...writes, ...told];
}

/** A clock that shows the store's time. For times that are stored and compared, which another daemon may have written (ST24). */
export const storeClock = (bus: Pick<Bus, "now">, clock: Clock): Clock => ({ ...clock, now: () => bus.now() });

/** How long a caller waits for a store that refuses to write, for example because the disk is full, before the call fails. */
export const ADMIT_MS_MAX = 1000;

export interface BusLimits extends CommitLimits, MembershipLimits, FollowLimits {
	/** Records or characters of one log that one commit should hold at most; beyond it the writer is `crowded`. */
	commitRecordsMax: number;
	commitCharsMax: number;
	/** Characters of all logs together that may wait for commits; beyond it every writer is `crowded`. */
	waitingCharsMax: number;
	/** How long the last commit may take when the Bus is closed, and how long the answers that are awaited then. */
	closeMsMax: number;
	/** Segments kept decoded for readers behind the tail, all logs together. */
	pagesBytesMax: number;
}

export const BUS_LIMITS: BusLimits = {
	segmentCharsMax: 16 * 1024,
	segmentCharsMin: 2 * 1024,
	tailBytesMax: 16 * 1024 * 1024,
	commitLogsMax: 128,
	commitTotalCharsMax: 4 * 1024 * 1024,
	waitingCharsMax: 64 * 1024 * 1024,
	watchMs: 500,
	leaseMs: 10_000,
	lookMs: 50,
	idsPerBlock: 64,
	closeMsMax: 5000,
	commitRecordsMax: 512,
	commitCharsMax: 64 * 1024,
	pagesBytesMax: 16 * 1024 * 1024,
	commitRetryMsMax: 30_000,
	commitRetryMs: 250,
	silentMsMax: 5000,
	tidyMs: 1000,
};
