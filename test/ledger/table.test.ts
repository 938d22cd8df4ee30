/** The cost of a new kind of stored row: its port, its SQL, and its name in the list. */

import { expect, onTestFinished, test } from "vitest";
import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { TABLES } from "../../packages/daemon/src/ledger/ledger.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { must, type SqlTable, type StepsOf } from "../../packages/daemon/src/std/sql/sql.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { openTables } from "../../packages/daemon/src/std/sqlite/tables.ts";
import { type Reading, writesOf } from "../../packages/daemon/src/std/write.ts";
import { quiet } from "../quiet.ts";
import { turnOf } from "./rig.ts";

interface Jobs {
	due(now: number): Reading<string[]>;
}
interface JobOps {
	plan(id: string, at: number): void;
	done(id: string): void;
}
const jobWrites = writesOf<JobOps>("jobs", ["plan", "done"]);

const SQL = { plan: "INSERT INTO job VALUES (?, ?, ?)", done: "DELETE FROM job WHERE id = ?" };

const ops: StepsOf<JobOps> = {
	plan: ({ node }, id, at) => [must(SQL.plan, [id, at, node], "nothing planned")],
	done: (_, id) => [must(SQL.done, [id], `There is no job ${id}.`)],
};

const jobsTable: SqlTable<Jobs> = {
	name: "jobs",
	schema: ["CREATE TABLE job (id TEXT PRIMARY KEY, at INTEGER NOT NULL, node INTEGER NOT NULL) STRICT"],
	sql: SQL,
	ops,
	reads: (db) => ({ due: db.all("SELECT id FROM job WHERE at <= ? ORDER BY at", ({ id }) => String(id)) }),
};

test("ST7: a new kind is one folder and one name: its writes commit with those of the others", async () => {
	const file = openSqlite(":memory:", "process");
	const { jobs, turns } = openTables(file, { ...TABLES, jobs: jobsTable });
	const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
	onTestFinished(async () => {
		await bus.close();
		file.close();
	});
	await bus.write([jobWrites.plan("a", 5), jobWrites.plan("b", 1), turnWrites.settle(turnOf("run_1"))]);
	expect(jobs.due(9)).toEqual(["b", "a"]);
	const missing = { refusal: "conflict", message: "There is no job c." };
	await expect(bus.write([turnWrites.settle(turnOf("run_2")), jobWrites.done("c")])).rejects.toMatchObject(missing);
	expect(turns.get("run_2")).toBeUndefined();
	await expect(bus.write([jobWrites.plan("a", 7)])).rejects.toMatchObject({ refusal: "duplicate" });
	await bus.write([jobWrites.done("b")]);
	expect(jobs.due(9)).toEqual(["a"]);
});

/** The list in a parameter, and a row that only checks a limit. */
const isOfValues = (step: string) => step.startsWith("SCAN json_each") || step.startsWith("SCAN CONSTANT ROW");

test("I11: what is read by a key is found by an index; only pages, which have a limit, walk through a table", () => {
	const file = openSqlite(":memory:", "process");
	onTestFinished(() => file.close());
	const { db } = file;
	const statements: string[] = [];
	const prepare = db.prepare.bind(db);
	db.prepare = (sql, options) => {
		statements.push(sql);
		return prepare(sql, options);
	};
	openTables(file, TABLES);
	db.prepare = prepare;
	const walks = statements.flatMap((sql) => {
		if (!/FROM (?:turns|messages|tool_calls|inbound|delivery|delivery_message|sessions)\b/.test(sql)) return [];
		const plan = db
			.prepare(`EXPLAIN QUERY PLAN ${sql}`)
			.all()
			.map(({ detail }) => String(detail));
		const isWalk = plan.some((step) => step.startsWith("SCAN ") && !step.includes("USING") && !isOfValues(step));
		return isWalk && !sql.includes("LIMIT") ? [{ sql, plan }] : [];
	});
	expect(statements.length).toBeGreaterThan(40);
	expect(walks).toEqual([]);
	const ofRun = statements.find((sql) => sql.includes("FROM delivery WHERE run_id = ?1"))!;
	expect(JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${ofRun}`).all())).toContain("SEARCH delivery USING INDEX");
	const waiting = statements.find((sql) => sql.includes("state = 'queued' AND session = ?"))!;
	expect(JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${waiting}`).all())).toContain("inbound_waiting");
});
