/** The Ledger: settled truth, one folder per kind of thing, whose `port.ts` is its door. It is read here; it is changed by the writes of its things, inside a commit. */

import type { SqliteFile } from "../std/sqlite.ts";
import { queriesOf } from "../std/write.ts";
import type { StoredApprovals } from "./approvals/port.ts";
import { approvalsInSqlite } from "./approvals/sqlite.ts";
import type { Checkpoints } from "./checkpoints/port.ts";
import { checkpointsInSqlite } from "./checkpoints/sqlite.ts";
import type { Deliveries } from "./deliveries/port.ts";
import { deliveriesInSqlite } from "./deliveries/sqlite.ts";
import type { StoredExecution } from "./execution/port.ts";
import { executionInSqlite } from "./execution/sqlite.ts";
import type { Grants } from "./grants/port.ts";
import { grantsInSqlite } from "./grants/sqlite.ts";
import type { InboundEvent, StoredInbox } from "./inbox/port.ts";
import { inboxInSqlite } from "./inbox/sqlite.ts";
import type { StoredNotes } from "./notes/port.ts";
import { notesInSqlite } from "./notes/sqlite.ts";
import type { Pairings } from "./pairings/port.ts";
import { pairingsInSqlite } from "./pairings/sqlite.ts";
import type { Phases } from "./phases/port.ts";
import { phasesInSqlite } from "./phases/sqlite.ts";
import type { StoredSessions } from "./sessions/port.ts";
import { sessionsInSqlite } from "./sessions/sqlite.ts";
import { openTables } from "./table.ts";
import type { Trusts } from "./trust/port.ts";
import { trustInSqlite } from "./trust/sqlite.ts";
import type { Turn, Turns } from "./turns/port.ts";
import { turnsInSqlite } from "./turns/sqlite.ts";

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

/** In the order in which their tables are made. A new kind is one folder and one line here. */
export const TABLES = {
	sessions: sessionsInSqlite,
	turns: turnsInSqlite,
	inbox: inboxInSqlite,
	deliveries: deliveriesInSqlite,
	pairings: pairingsInSqlite,
	notes: notesInSqlite,
	approvals: approvalsInSqlite,
	grants: grantsInSqlite,
	checkpoints: checkpointsInSqlite,
	phases: phasesInSqlite,
	execution: executionInSqlite,
	trust: trustInSqlite,
};

export function sqliteLedger(file: SqliteFile): Ledger {
	const tables = openTables(file, TABLES);
	const { turns, inbox } = tables;
	file.tables.registerAnswers<LedgerQuestions>("ledger", {
		sessionSnapshot(session, page) {
			const [newestTurn] = turns.list({ session, limit: 1 });
			return { turns: turns.list({ session, ...page }), newestTurn, queued: inbox.queued(session) };
		},
	});
	return tables;
}
