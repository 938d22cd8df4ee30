/** The Ledger: settled truth, one folder per kind of thing, whose `port.ts` is its door. It is read here; it is changed by the writes of its things, inside a commit. */

import type { SqliteFile } from "../std/sqlite/sqlite.ts";
import { openTables } from "../std/sqlite/tables.ts";
import { queriesOf, type Reading, whenAllRead } from "../std/write.ts";
import type { StoredApprovals } from "./approvals/port.ts";
import { approvalsTable } from "./approvals/sql.ts";
import type { Checkpoints } from "./checkpoints/port.ts";
import { checkpointsTable } from "./checkpoints/sql.ts";
import type { Deliveries } from "./deliveries/port.ts";
import { deliveriesTable } from "./deliveries/sql.ts";
import type { StoredExecution } from "./execution/port.ts";
import { executionTable } from "./execution/sql.ts";
import type { Grants } from "./grants/port.ts";
import { grantsTable } from "./grants/sql.ts";
import type { InboundEvent, StoredInbox } from "./inbox/port.ts";
import { inboxTable } from "./inbox/sql.ts";
import type { StoredNotes } from "./notes/port.ts";
import { notesTable } from "./notes/sql.ts";
import type { Pairings } from "./pairings/port.ts";
import { pairingsTable } from "./pairings/sql.ts";
import type { Phases } from "./phases/port.ts";
import { phasesTable } from "./phases/sql.ts";
import type { StoredSessions } from "./sessions/port.ts";
import { sessionsTable } from "./sessions/sql.ts";
import type { Trusts } from "./trust/port.ts";
import { trustTable } from "./trust/sql.ts";
import type { Turn, Turns } from "./turns/port.ts";
import { turnsTable } from "./turns/sql.ts";

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
	sessionSnapshot(session: string, page: { limit: number; before?: string }): Reading<SessionSnapshot>;
}

export const { sessionSnapshot } = queriesOf<LedgerQuestions>("ledger", ["sessionSnapshot"]);

/** In the order in which their tables are made. A new kind is one folder and one line here. */
export const TABLES = {
	sessions: sessionsTable,
	turns: turnsTable,
	inbox: inboxTable,
	deliveries: deliveriesTable,
	pairings: pairingsTable,
	notes: notesTable,
	approvals: approvalsTable,
	grants: grantsTable,
	checkpoints: checkpointsTable,
	phases: phasesTable,
	execution: executionTable,
	trust: trustTable,
};

/** Answers from the reads of one connection: what they are asked together with is of the same moment. */
export const ledgerAnswers = ({ turns, inbox }: Pick<Ledger, "turns" | "inbox">): LedgerQuestions => ({
	sessionSnapshot: (session, page) =>
		whenAllRead(
			[turns.list({ session, limit: 1 }), turns.list({ session, ...page }), inbox.queued(session)],
			([newestTurn], listed, queued) => ({ turns: listed, newestTurn, queued }),
		),
});

export function sqliteLedger(file: SqliteFile): Ledger {
	const ledger = openTables<Ledger>(file, TABLES);
	file.tables.registerAnswers("ledger", ledgerAnswers(ledger));
	return ledger;
}
