/** The Ledger: settled truth, one folder per kind of thing. It is read here; it is changed by the writes of its things, inside a commit. */

import type { Reading } from "../std/write.ts";
import type { Deliveries } from "./deliveries/port.ts";
import type { InboundEvent, Inbox } from "./inbox/port.ts";
import type { Notes } from "./notes/port.ts";
import type { Pairings } from "./pairings/port.ts";
import type { Sessions } from "./sessions/port.ts";
import type { Turn, Turns } from "./turns/port.ts";

export interface Ledger {
	readonly turns: Turns;
	readonly sessions: Sessions;
	readonly inbox: Inbox;
	readonly deliveries: Deliveries;
	readonly pairings: Pairings;
	readonly notes: Notes;
	/** A session at one moment (ST17). */
	snapshot(session: string, page: { limit: number; before?: string }): Reading<SessionSnapshot>;
}

export interface SessionSnapshot {
	/** One page, newest first. */
	turns: Turn[];
	/** The newest of all, whatever the page. */
	newestTurn?: Turn;
	/** Oldest first. */
	queued: InboundEvent[];
}
