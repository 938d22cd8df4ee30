/** Checkpoints in SQL. */

import { Columns, json, number, text, upsertInto } from "../../std/sql/columns.ts";
import { type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { CheckpointOps, Checkpoints, StoredCheckpoint } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
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

const CHECKPOINT = new Columns<StoredCheckpoint>({
	runId: text("run_id"),
	session: text("session"),
	engine: text("engine"),
	configHash: text("config_hash"),
	at: number("at"),
	root: text("root"),
	data: text("data"),
	shown: text("shown"),
	lengths: json("lengths"),
	answer: json("answer"),
});

const SQL = {
	put: upsertInto("checkpoint", ["run_id"], CHECKPOINT),
	remove: "DELETE FROM checkpoint WHERE run_id = ?",
	forget: "DELETE FROM checkpoint WHERE at < ?",
	removeNaming: "DELETE FROM checkpoint WHERE replace(data, ?, '') <> data",
};

const ops: StepsOf<CheckpointOps> = {
	put: (_, checkpoint) => [step(SQL.put, ...CHECKPOINT.values(checkpoint))],
	remove: (_, runId) => [step(SQL.remove, runId)],
	forget: (_, before) => [step(SQL.forget, before)],
	removeNaming: (_, part) => [step(SQL.removeNaming, part)],
};

export const checkpointsTable: SqlTable<Checkpoints> = {
	name: "checkpoints",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads: (db) => ({
		get: db.get("SELECT * FROM checkpoint WHERE run_id = ?", CHECKPOINT.of),
		info: db.get("SELECT run_id, session, engine, config_hash, at FROM checkpoint WHERE run_id = ?", CHECKPOINT.of),
	}),
};
