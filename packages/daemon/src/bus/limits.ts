/** The limits of the Bus, with their defaults (I11). */

import type { CommitLimits } from "./commit/outcome.ts";
import type { MembershipLimits } from "./membership.ts";

/** How long a caller waits for a store that refuses to write, for example because the disk is full, before the call fails. */
export const ADMIT_MS_MAX = 1000;

export interface BusLimits extends CommitLimits, MembershipLimits {
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
