/** Jobs in a SQLite file. */

import { type AtOnce, jsonText, must, pageEnd, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { JobRows, StoredJob, StoredJobOps } from "./rows.ts";

const STEPS: readonly string[] = [
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
	`
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
];

export const jobsInSqlite: SqliteTable<AtOnce<JobRows>> = {
	area: "jobs",
	steps: STEPS,
	listedBy: { table: "job", id: "id" },
	open(file) {
		file.tables.register<StoredJobOps>("jobs", applier(file));
		const get = statement(file, "SELECT job.*, result FROM job LEFT JOIN job_body USING (seq) WHERE id = ?");
		const head = statement(file, "SELECT * FROM job WHERE id = ?");
		const scenario = statement(file, "SELECT scenario FROM job JOIN job_body USING (seq) WHERE id = ?");
		const bytes = statement(
			file,
			`SELECT ifnull((SELECT sum(bytes) FROM job WHERE app_id = ?1), 0)
			+ ifnull((SELECT sum(bytes) FROM job_body WHERE app_id = ?1), 0) AS bytes`,
		);
		const list = statement(
			file,
			`SELECT * FROM job WHERE (?1 IS NULL OR app_id = ?1)
			AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2)))
			AND (?3 IS NULL OR seq < ${pageEnd("job", "id", "?3")}) ORDER BY seq DESC LIMIT ?4`,
		);
		const older = statement(file, "SELECT 1 FROM job WHERE finished_at < ?1 AND (?2 IS NULL OR app_id = ?2) LIMIT 1");
		return {
			get(id) {
				const row = get.get(id);
				return (
					row && {
						...jobOf(row),
						result: row.result === null ? undefined : (JSON.parse(String(row.result)) as unknown),
					}
				);
			},
			head(id) {
				const row = head.get(id);
				return row && jobOf(row);
			},
			scenario(id) {
				const row = scenario.get(id);
				return row && (JSON.parse(String(row.scenario)) as unknown);
			},
			list: ({ appId = null, states = [], limit, before = null }) =>
				list.all(appId, states.length === 0 ? null : jsonText(states), before, limit).map(jobOf),
			isOlder: (before, appId) => older.get(before, appId ?? null) !== undefined,
			bytes: (appId) => Number(bytes.get(appId)!.bytes),
		};
	},
};

function applier(file: SqliteFile): ApplierOf<StoredJobOps> {
	const submit = statement(
		file,
		"INSERT INTO job (id, app_id, state, created_at, finished_at, snapshot, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, octet_length(?6))",
	);
	const keep = statement(
		file,
		"INSERT INTO job_body (seq, app_id, scenario, bytes) VALUES (?1, ?2, ?3, octet_length(?3))",
	);
	const change = statement(
		file,
		"UPDATE job SET state = ?1, finished_at = ?2, snapshot = ?3, bytes = octet_length(?3) WHERE id = ?4 AND finished_at IS NULL",
	);
	const settle = statement(
		file,
		`UPDATE job_body SET result = ?1, bytes = octet_length(scenario) + octet_length(?1)
		WHERE seq = (SELECT seq FROM job WHERE id = ?2)`,
	);
	const old =
		"SELECT seq FROM job WHERE finished_at < ?1 AND (?3 IS NULL OR app_id = ?3) ORDER BY finished_at LIMIT ?2";
	const forgetBodies = statement(file, `DELETE FROM job_body WHERE seq IN (${old})`);
	const forget = statement(file, `DELETE FROM job WHERE seq IN (${old})`);
	return {
		submit(_, { id, appId, state, createdAt, finishedAt = null, job }, scenario) {
			const seq = submit.insert(id, appId, state, createdAt, finishedAt, jsonText(job))!;
			keep.run(seq, appId, jsonText(scenario));
		},
		change(_, { id, state, job, result, finishedAt = null }) {
			must(change.run(state, finishedAt, jsonText(job), id), `${id} has ended, or there is no such job.`);
			if (result !== undefined) settle.run(jsonText(result), id);
		},
		forget(_, before, rowsMax, appId) {
			forgetBodies.run(before, rowsMax, appId ?? null);
			forget.run(before, rowsMax, appId ?? null);
		},
	};
}

const jobOf = (row: Row): StoredJob => ({
	id: String(row.id),
	appId: String(row.app_id),
	state: String(row.state),
	createdAt: Number(row.created_at),
	finishedAt: row.finished_at === null ? undefined : Number(row.finished_at),
	job: JSON.parse(String(row.snapshot)),
});
