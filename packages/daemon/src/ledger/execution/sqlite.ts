/** The execution log in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, jsonOrNull, type Row, type SqliteTable, statement } from "../table.ts";
import type { ExecutionOps, StoredEntry, StoredExecution } from "./port.ts";

const STEPS: readonly string[] = [
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

export const executionInSqlite: SqliteTable<AtOnce<StoredExecution>> = {
	area: "execution",
	steps: STEPS,
	open(file) {
		file.tables.register<ExecutionOps>("execution", applier(file));
		const list = statement(
			file,
			`SELECT * FROM execution_entry WHERE session = ?1 AND (?2 IS NULL OR run_id = ?2) AND seq < ?3
			ORDER BY seq DESC LIMIT ?4`,
		);
		const older = statement(file, "SELECT 1 FROM execution_entry WHERE at < ? LIMIT 1");
		return {
			list: ({ session, runId = null, before = Number.MAX_SAFE_INTEGER, limit }) =>
				list.all(session, runId, before, limit).map(entryOf),
			isOlder: (before) => older.get(before) !== undefined,
		};
	},
};

function applier(file: SqliteFile): ApplierOf<ExecutionOps> {
	const add = statement(
		file,
		"INSERT INTO execution_entry (session, run_id, at, kind, agent, text, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
	);
	const forget = statement(
		file,
		"DELETE FROM execution_entry WHERE seq IN (SELECT seq FROM execution_entry WHERE at < ? ORDER BY at LIMIT ?)",
	);
	return {
		add(_, entries) {
			for (const { session, runId = null, at, kind, agent = null, text, data } of entries)
				add.run(session, runId, at, kind, agent, text, jsonOrNull(data));
		},
		forget(_, before, entriesMax) {
			forget.run(before, entriesMax);
		},
	};
}

function entryOf(row: Row): StoredEntry & { id: number } {
	const entry: StoredEntry & { id: number } = {
		id: Number(row.seq),
		session: String(row.session),
		at: Number(row.at),
		kind: String(row.kind),
		text: String(row.text),
	};
	if (row.run_id !== null) entry.runId = String(row.run_id);
	if (row.agent !== null) entry.agent = String(row.agent);
	if (row.data !== null) entry.data = JSON.parse(String(row.data)) as Record<string, unknown>;
	return entry;
}
