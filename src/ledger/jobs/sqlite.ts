/** Jobs in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, jsonText, must, pageEnd, type Row, type SqliteThing, statement } from "../thing.ts";
import type { StoredJob, StoredJobOps, StoredJobs } from "./port.ts";

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
];

export const jobsInSqlite: SqliteThing<AtOnce<StoredJobs>> = {
	area: "jobs",
	steps: STEPS,
	open(file) {
		file.things.register<StoredJobOps>("jobs", applier(file));
		const get = statement(file, "SELECT * FROM job WHERE id = ?");
		const list = statement(
			file,
			`SELECT * FROM job WHERE (?1 IS NULL OR app_id = ?1)
			AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2)))
			AND (?3 IS NULL OR seq < ${pageEnd("job", "id", "?3")}) ORDER BY seq DESC LIMIT ?4`,
		);
		const older = statement(file, "SELECT 1 FROM job WHERE finished_at < ? LIMIT 1");
		return {
			get(id) {
				const row = get.get(id);
				return row && jobOf(row);
			},
			list: ({ appId = null, states = [], limit, before = null }) =>
				list.all(appId, states.length === 0 ? null : jsonText(states), before, limit).map(jobOf),
			isOlder: (before) => older.get(before) !== undefined,
		};
	},
};

function applier(file: SqliteFile): ApplierOf<StoredJobOps> {
	const submit = statement(
		file,
		`INSERT INTO job (id, app_id, state, created_at, finished_at, scenario, snapshot) VALUES (?, ?, ?, ?, ?, ?, ?)`,
	);
	const change = statement(
		file,
		"UPDATE job SET state = ?, finished_at = ?, snapshot = ? WHERE id = ? AND finished_at IS NULL",
	);
	const forget = statement(
		file,
		"DELETE FROM job WHERE seq IN (SELECT seq FROM job WHERE finished_at < ? ORDER BY finished_at LIMIT ?)",
	);
	return {
		submit(_, { id, appId, state, createdAt, finishedAt = null, scenario, job }) {
			submit.run(id, appId, state, createdAt, finishedAt, jsonText(scenario), jsonText(job));
		},
		change(_, { id, state, job, finishedAt = null }) {
			must(change.run(state, finishedAt, jsonText(job), id), `${id} has ended, or there is no such job.`);
		},
		forget(_, before, rowsMax) {
			forget.run(before, rowsMax);
		},
	};
}

const jobOf = (row: Row): StoredJob => ({
	id: String(row.id),
	appId: String(row.app_id),
	state: String(row.state),
	createdAt: Number(row.created_at),
	...(row.finished_at !== null && { finishedAt: Number(row.finished_at) }),
	scenario: JSON.parse(String(row.scenario)),
	job: JSON.parse(String(row.snapshot)),
});
