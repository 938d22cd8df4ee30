/** The Ledger in a SQLite file: the list of its things. */

import type { SqliteFile } from "../std/sqlite.ts";
import { approvalsInSqlite } from "./approvals/sqlite.ts";
import { checkpointsInSqlite } from "./checkpoints/sqlite.ts";
import { deliveriesInSqlite } from "./deliveries/sqlite.ts";
import { executionInSqlite } from "./execution/sqlite.ts";
import { grantsInSqlite } from "./grants/sqlite.ts";
import { inboxInSqlite } from "./inbox/sqlite.ts";
import { notesInSqlite } from "./notes/sqlite.ts";
import { pairingsInSqlite } from "./pairings/sqlite.ts";
import { phasesInSqlite } from "./phases/sqlite.ts";
import type { Ledger, LedgerQuestions } from "./port.ts";
import { sessionsInSqlite } from "./sessions/sqlite.ts";
import { openTables } from "./table.ts";
import { trustInSqlite } from "./trust/sqlite.ts";
import { turnsInSqlite } from "./turns/sqlite.ts";

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
