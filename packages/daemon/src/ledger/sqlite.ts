/** The Ledger in a SQLite file: the list of its things. */

import { idsAfter } from "@nexus-stream/protocol";
import type { SqliteFile } from "../std/sqlite.ts";
import { approvalsInSqlite } from "./approvals/sqlite.ts";
import { appsInSqlite } from "./apps/sqlite.ts";
import { artifactsInSqlite } from "./artifacts/sqlite.ts";
import { checkpointsInSqlite } from "./checkpoints/sqlite.ts";
import { connectorsInSqlite } from "./connectors/sqlite.ts";
import { deliveriesInSqlite } from "./deliveries/sqlite.ts";
import { executionInSqlite } from "./execution/sqlite.ts";
import { grantsInSqlite } from "./grants/sqlite.ts";
import { idempotencyInSqlite } from "./idempotency/sqlite.ts";
import { inboxInSqlite } from "./inbox/sqlite.ts";
import { jobsInSqlite } from "./jobs/sqlite.ts";
import { memoryInSqlite } from "./memory/sqlite.ts";
import { notesInSqlite } from "./notes/sqlite.ts";
import { noticesInSqlite } from "./notices/sqlite.ts";
import { pairingsInSqlite } from "./pairings/sqlite.ts";
import { phasesInSqlite } from "./phases/sqlite.ts";
import type { Ledger, LedgerQuestions } from "./port.ts";
import { receiptsInSqlite } from "./receipts/sqlite.ts";
import { sessionsInSqlite } from "./sessions/sqlite.ts";
import { signInsInSqlite } from "./signins/sqlite.ts";
import { greatestId, openTables } from "./table.ts";
import { trustInSqlite } from "./trust/sqlite.ts";
import { turnsInSqlite } from "./turns/sqlite.ts";
import { workflowsInSqlite } from "./workflows/sqlite.ts";

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
	memory: memoryInSqlite,
	checkpoints: checkpointsInSqlite,
	phases: phasesInSqlite,
	execution: executionInSqlite,
	apps: appsInSqlite,
	signins: signInsInSqlite,
	receipts: receiptsInSqlite,
	workflows: workflowsInSqlite,
	artifacts: artifactsInSqlite,
	jobs: jobsInSqlite,
	idempotency: idempotencyInSqlite,
	connectors: connectorsInSqlite,
	notices: noticesInSqlite,
	trust: trustInSqlite,
};

/** Where things are listed by their ids: what is made from now on stands before what is there. */
const LISTED_BY_ID = {
	turns: "run_id",
	inbound: "event_id",
	delivery: "id",
	job: "id",
	memory: "id",
	workflow: "id",
};

export function sqliteLedger(file: SqliteFile): Ledger {
	const tables = openTables(file, TABLES);
	for (const [table, id] of Object.entries(LISTED_BY_ID)) idsAfter(greatestId(file, table, id) ?? "");
	const { turns, inbox } = tables;
	file.tables.registerAnswers<LedgerQuestions>("ledger", {
		sessionSnapshot(session, page) {
			const [newestTurn] = turns.list({ session, limit: 1 });
			return { turns: turns.list({ session, ...page }), newestTurn, queued: inbox.queued(session) };
		},
	});
	return tables;
}
