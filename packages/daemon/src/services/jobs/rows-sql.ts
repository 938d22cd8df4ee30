/** Jobs in SQL. */

import { Columns, json, number, text } from "../../std/sql/columns.ts";
import { jsonText, must, pageEnd, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { JobRows, StoredJob, StoredJobOps } from "./rows.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE job (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		app_id TEXT NOT NULL,
		state TEXT NOT NULL,
		created_at INTEGER NOT NULL,
		finished_at INTEGER,
		scenario TEXT NOT NULL,
		snapshot TEXT NOT NULL
	) STRICT;
	CREATE INDEX job_by_app ON job (app_id, seq);
	CREATE INDEX job_by_time ON job (finished_at) WHERE finished_at IS NOT NULL;
	`,
	{
		sqlite: `
	-- What is large is apart, so that lists and starts do not read it. The sizes are sums over an index.
	CREATE TABLE job_body (
		seq INTEGER PRIMARY KEY,
		app_id TEXT NOT NULL,
		scenario TEXT NOT NULL,
		result TEXT,
		bytes INTEGER NOT NULL
	) STRICT;
	INSERT INTO job_body (seq, app_id, scenario, result, bytes) SELECT seq, app_id, scenario,
		nullif(json_patch('{}', json_object('text', snapshot ->> '$.text', 'embeddings', json(snapshot -> '$.embeddings'))), '{}'),
		0 FROM job;
	UPDATE job_body SET bytes = octet_length(scenario) + ifnull(octet_length(result), 0);
	UPDATE job SET snapshot = json_remove(snapshot, '$.text', '$.embeddings');
	ALTER TABLE job DROP COLUMN scenario;
	ALTER TABLE job ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
	UPDATE job SET bytes = octet_length(snapshot);
	CREATE INDEX job_bytes ON job (app_id, bytes);
	CREATE INDEX job_body_bytes ON job_body (app_id, bytes);
	`,
		// No row is older than this step.
		postgres: `
	CREATE TABLE job_body (
		seq BIGINT PRIMARY KEY,
		app_id TEXT COLLATE "C" NOT NULL,
		scenario TEXT COLLATE "C" NOT NULL,
		result TEXT COLLATE "C",
		bytes BIGINT NOT NULL
	);
	ALTER TABLE job DROP COLUMN scenario;
	ALTER TABLE job ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
	CREATE INDEX job_bytes ON job (app_id, bytes);
	CREATE INDEX job_body_bytes ON job_body (app_id, bytes);
	`,
	},
];

const JOB = new Columns<StoredJob & { result?: unknown }>({
	id: text("id"),
	appId: text("app_id"),
	state: text("state"),
	createdAt: number("created_at"),
	finishedAt: number("finished_at"),
	job: json("snapshot"),
	result: json("result"),
});

const OLD = `SELECT seq FROM job WHERE finished_at < ?1 AND (CAST(?3 AS TEXT) IS NULL OR app_id = ?3)
	ORDER BY finished_at LIMIT ?2`;

const SQL = {
	submit: `INSERT INTO job (id, app_id, state, created_at, finished_at, snapshot, bytes)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, octet_length(?6))`,
	keep: `INSERT INTO job_body (seq, app_id, scenario, bytes)
		VALUES ((SELECT seq FROM job WHERE id = ?1), ?2, ?3, octet_length(?3))`,
	change: `UPDATE job SET state = ?1, finished_at = ?2, snapshot = ?3, bytes = octet_length(?3)
		WHERE id = ?4 AND finished_at IS NULL`,
	settle: `UPDATE job_body SET result = ?1, bytes = octet_length(scenario) + octet_length(?1)
		WHERE seq = (SELECT seq FROM job WHERE id = ?2)`,
	forgetBodies: `DELETE FROM job_body WHERE seq IN (${OLD})`,
	forget: `DELETE FROM job WHERE seq IN (${OLD})`,
};

const ops: StepsOf<StoredJobOps> = {
	submit: (_, { id, appId, state, createdAt, finishedAt = null, job }, scenario) => [
		step(SQL.submit, id, appId, state, createdAt, finishedAt, jsonText(job)),
		step(SQL.keep, id, appId, jsonText(scenario)),
	],
	change(_, { id, state, job, result, finishedAt = null }) {
		const values = [state, finishedAt, jsonText(job), id];
		const changed = must(SQL.change, values, `${id} has ended, or there is no such job.`);
		return result === undefined ? [changed] : [changed, step(SQL.settle, jsonText(result), id)];
	},
	forget: (_, before, rowsMax, appId) => [
		step(SQL.forgetBodies, before, rowsMax, appId ?? null),
		step(SQL.forget, before, rowsMax, appId ?? null),
	],
};

export const jobsTable: SqlTable<JobRows> = {
	name: "jobs",
	schema: SCHEMA,
	listedBy: { table: "job", id: "id" },
	sql: SQL,
	ops,
	reads(db) {
		const list = db.all(
			`SELECT * FROM job WHERE (CAST(?1 AS TEXT) IS NULL OR app_id = ?1)
			AND (CAST(?2 AS TEXT) IS NULL OR state IN listOf(?2))
			AND (CAST(?3 AS TEXT) IS NULL OR seq < ${pageEnd("job", "id", "?3")}) ORDER BY seq DESC LIMIT ?4`,
			JOB.of,
		);
		const older = db.has(
			"SELECT 1 FROM job WHERE finished_at < ?1 AND (CAST(?2 AS TEXT) IS NULL OR app_id = ?2) LIMIT 1",
		);
		return {
			get: db.get("SELECT job.*, result FROM job LEFT JOIN job_body USING (seq) WHERE id = ?", JOB.of),
			head: db.get("SELECT * FROM job WHERE id = ?", JOB.of),
			scenario: db.get(
				"SELECT scenario FROM job JOIN job_body USING (seq) WHERE id = ?",
				({ scenario }) => JSON.parse(String(scenario)) as unknown,
			),
			list: ({ appId = null, states = [], limit, before = null }) =>
				list(appId, states.length === 0 ? null : JSON.stringify(states), before, limit),
			isOlder: (before, appId) => older(before, appId ?? null),
			bytes: db.one(
				`SELECT coalesce((SELECT sum(bytes) FROM job WHERE app_id = ?1), 0)
				+ coalesce((SELECT sum(bytes) FROM job_body WHERE app_id = ?1), 0) AS bytes`,
				({ bytes }) => Number(bytes),
			),
		};
	},
};
