/** Checkpoints in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, jsonOrNull, jsonText, type Row, type SqliteTable, statement } from "../table.ts";
import type { CheckpointInfo, CheckpointOps, Checkpoints, StoredCheckpoint } from "./port.ts";

const STEPS: readonly string[] = [
	`
	-- data, lengths and answer are JSON.
	CREATE TABLE checkpoint (
		run_id TEXT PRIMARY KEY,
		session TEXT NOT NULL,
		engine TEXT NOT NULL,
		config_hash TEXT NOT NULL,
		at INTEGER NOT NULL,
		root TEXT NOT NULL,
		data TEXT NOT NULL,
		shown TEXT NOT NULL,
		lengths TEXT NOT NULL,
		answer TEXT
	) STRICT;
	CREATE INDEX checkpoint_by_time ON checkpoint (at);
	`,
];

export const checkpointsInSqlite: SqliteTable<AtOnce<Checkpoints>> = {
	area: "checkpoints",
	steps: STEPS,
	open(file) {
		file.tables.register<CheckpointOps>("checkpoints", applier(file));
		const whole = statement(file, "SELECT * FROM checkpoint WHERE run_id = ?");
		const facts = statement(file, "SELECT run_id, session, engine, config_hash, at FROM checkpoint WHERE run_id = ?");
		return {
			get(runId) {
				const row = whole.get(runId);
				return row && checkpointOf(row);
			},
			info(runId) {
				const row = facts.get(runId);
				return row && infoOf(row);
			},
		};
	},
};

function applier(file: SqliteFile): ApplierOf<CheckpointOps> {
	const put = statement(
		file,
		`INSERT OR REPLACE INTO checkpoint (run_id, session, engine, config_hash, at, root, data, shown, lengths, answer)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const remove = statement(file, "DELETE FROM checkpoint WHERE run_id = ?");
	const forget = statement(file, "DELETE FROM checkpoint WHERE at < ?");
	const removeNaming = statement(file, "DELETE FROM checkpoint WHERE instr(data, ?) > 0");
	return {
		put(_, { runId, session, engine, configHash, at, root, data, shown, lengths, answer }) {
			const json = [data, shown, jsonText(lengths), jsonOrNull(answer)];
			put.run(runId, session, engine, configHash, at, root, ...json);
		},
		remove(_, runId) {
			remove.run(runId);
		},
		forget(_, before) {
			forget.run(before);
		},
		removeNaming(_, text) {
			removeNaming.run(text);
		},
	};
}

const infoOf = (row: Row): CheckpointInfo => ({
	runId: String(row.run_id),
	session: String(row.session),
	engine: String(row.engine),
	configHash: String(row.config_hash),
	at: Number(row.at),
});

function checkpointOf(row: Row): StoredCheckpoint {
	const checkpoint: StoredCheckpoint = {
		...infoOf(row),
		root: String(row.root),
		data: String(row.data),
		shown: String(row.shown),
		lengths: JSON.parse(String(row.lengths)) as Record<string, number>,
	};
	if (row.answer !== null) checkpoint.answer = JSON.parse(String(row.answer));
	return checkpoint;
}
