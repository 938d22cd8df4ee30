/** The Ledger: settled truth, one folder per kind of thing. It is read here; it is changed by the writes of its things, inside a commit. */

import { queriesOf } from "../std/write.ts";
import type { StoredApprovals } from "./approvals/port.ts";
import type { Checkpoints } from "./checkpoints/port.ts";
import type { Deliveries } from "./deliveries/port.ts";
import type { StoredExecution } from "./execution/port.ts";
import type { Grants } from "./grants/port.ts";
import type { InboundEvent, StoredInbox } from "./inbox/port.ts";
import type { StoredNotes } from "./notes/port.ts";
import type { Pairings } from "./pairings/port.ts";
import type { Phases } from "./phases/port.ts";
import type { StoredSessions } from "./sessions/port.ts";
import type { Trusts } from "./trust/port.ts";
import type { Turn, Turns } from "./turns/port.ts";

export interface Ledger {
	readonly turns: Turns;
	readonly sessions: StoredSessions;
	readonly inbox: StoredInbox;
	readonly deliveries: Deliveries;
	readonly pairings: Pairings;
	readonly notes: StoredNotes;
	readonly approvals: StoredApprovals;
	readonly grants: Grants;
	readonly checkpoints: Checkpoints;
	readonly phases: Phases;
	readonly trust: Trusts;
	readonly execution: StoredExecution;
}

export interface SessionSnapshot {
	/** One page, newest first. */
	turns: Turn[];
	/** The newest of all, whatever the page. */
	newestTurn?: Turn;
	/** Oldest first. */
	queued: InboundEvent[];
}

export interface LedgerQuestions {
	/** A session at the moment at which it is asked together with something else (ST17). */
	sessionSnapshot(session: string, page: { limit: number; before?: string }): SessionSnapshot;
}

export const { sessionSnapshot } = queriesOf<LedgerQuestions>("ledger", ["sessionSnapshot"]);
