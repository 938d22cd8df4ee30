/** Jobs and workflows of a store from before requests and results stood apart: they come back whole, and are counted. */

import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { serviceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import { noticesInSqlite } from "../../packages/daemon/src/services/audit/rows-sqlite.ts";
import { jobsTable } from "../../packages/daemon/src/services/jobs/rows-sql.ts";
import { workflowsTable } from "../../packages/daemon/src/services/workflows/rows-sql.ts";
import { ddlFor } from "../../packages/daemon/src/std/sql/ddl.ts";
import { SQLITE } from "../../packages/daemon/src/std/sql/sql.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { tempPath } from "../services/jobs-rig.ts";

const SCENARIO = { model: "m", spec: { kind: "embed", inputs: ["a"] } };

it("a store of before opens with its jobs, workflows and notices", async () => {
	const path = tempPath();
	const db = new DatabaseSync(path);
	db.exec("CREATE TABLE schema_version (area TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT");
	for (const { name, schema } of [jobsTable, workflowsTable, noticesInSqlite]) {
		db.exec(ddlFor(SQLITE, schema[0]!));
		db.exec(`INSERT INTO schema_version VALUES ('${name}', 1)`);
	}
	const job = db.prepare(
		"INSERT INTO job (id, app_id, state, created_at, finished_at, scenario, snapshot) VALUES (?, 'shop', ?, 1, ?, ?, ?)",
	);
	const scenario = JSON.stringify(SCENARIO);
	job.run("job_text", "completed", 5, scenario, JSON.stringify({ id: "job_text", text: "it's null" }));
	job.run("job_vectors", "completed", 6, scenario, JSON.stringify({ id: "job_vectors", embeddings: [[1, 0.5], [2]] }));
	job.run("job_waits", "queued", null, scenario, JSON.stringify({ id: "job_waits", progress: -1 }));
	db.exec(`INSERT INTO workflow VALUES ('wf', 'shop', '', 0, 'n', '{"nodes":[]}', 'completed', NULL, 1, 2, 3);
		INSERT INTO workflow_node VALUES ('wf', 0, 'a', 'completed', '{}', '{"text":"out"}');
		INSERT INTO notice VALUES ('audit', 1, 1, 1, 'one')`);
	db.close();
	const file = openSqlite(path, "process");
	onTestFinished(() => file.close());
	const { jobs, workflows, notices } = serviceRows(file);
	expect(await jobs.get("job_text")).toMatchObject({ job: { id: "job_text" }, result: { text: "it's null" } });
	expect(await jobs.get("job_vectors")).toMatchObject({ result: { embeddings: [[1, 0.5], [2]] } });
	expect(await jobs.get("job_waits")).toEqual({
		id: "job_waits",
		appId: "shop",
		state: "queued",
		createdAt: 1,
		job: { id: "job_waits", progress: -1 },
	});
	expect(await jobs.scenario("job_waits")).toEqual(SCENARIO);
	expect(await jobs.bytes("shop")).toBeGreaterThan(3 * scenario.length);
	expect(await workflows.nodes("wf")).toMatchObject([{ nodeId: "a", output: { text: "out" } }]);
	expect(await workflows.bytes("shop")).toBe(12 + 2 + 14);
	expect(await notices.newest("audit", 9, 9)).toMatchObject([{ text: "one" }]);
});
