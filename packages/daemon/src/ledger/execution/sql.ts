/** The execution log in SQL. */

import { Columns, insertInto, json, number, text } from "../../std/sql/columns.ts";
import { type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { ExecutionOps, StoredEntry, StoredExecution } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	-- data is JSON.
	CREATE TABLE execution_entry (
		seq INTEGER PRIMARY KEY,
		session TEXT NOT NULL,
		run_id TEXT,
		at INTEGER NOT NULL,
		kind TEXT NOT NULL,
		agent TEXT,
		text TEXT NOT NULL,
		data TEXT
	) STRICT;
	CREATE INDEX execution_by_session ON execution_entry (session, seq);
	CREATE INDEX execution_by_time ON execution_entry (at);
	`,
];

const ENTRY = new Columns<StoredEntry>({
	session: text("session"),
	runId: text("run_id"),
	at: number("at"),
	kind: text("kind"),
	agent: text("agent"),
	text: text("text"),
	data: json("data"),
});

const SQL = {
	add: insertInto("execution_entry", ENTRY),
	forget: "DELETE FROM execution_entry WHERE seq IN (SELECT seq FROM execution_entry WHERE at < ? ORDER BY at LIMIT ?)",
};

const ops: StepsOf<ExecutionOps> = {
	add: (_, entries) => entries.map((entry) => step(SQL.add, ...ENTRY.values(entry))),
	forget: (_, before, entriesMax) => [step(SQL.forget, before, entriesMax)],
};

export const executionTable: SqlTable<StoredExecution> = {
	name: "execution",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads(db) {
		const list = db.all(
			`SELECT * FROM execution_entry WHERE session = ?1 AND (CAST(?2 AS TEXT) IS NULL OR run_id = ?2) AND seq < ?3
			ORDER BY seq DESC LIMIT ?4`,
			(row) => ({ id: Number(row.seq), ...ENTRY.of(row) }),
		);
		return {
			list: ({ session, runId = null, before = Number.MAX_SAFE_INTEGER, limit }) => list(session, runId, before, limit),
			isOlder: db.has("SELECT 1 FROM execution_entry WHERE at < ? LIMIT 1"),
		};
	},
};
