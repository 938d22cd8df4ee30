/** What a new kind of stored thing costs: its port, its SQLite part, and its name in the list. */

import { expect, onTestFinished, test } from "vitest";
import { createBus, sqliteStorage } from "../../src/bus/bus.ts";
import { turnWrites } from "../../src/ledger/ledger.ts";
import { THINGS } from "../../src/ledger/sqlite.ts";
import { type AtOnce, must, openThings, type SqliteThing, statement } from "../../src/ledger/thing.ts";
import { openSqlite } from "../../src/std/sqlite.ts";
import { type Reading, writesOf } from "../../src/std/write.ts";
import { turnOf } from "./rig.ts";

interface Jobs {
	due(now: number): Reading<string[]>;
}
interface JobOps {
	plan(id: string, at: number): void;
	done(id: string): void;
}
const jobWrites = writesOf<JobOps>("jobs", ["plan", "done"]);

const jobsInSqlite: SqliteThing<AtOnce<Jobs>> = {
	area: "jobs",
	steps: ["CREATE TABLE job (id TEXT PRIMARY KEY, at INTEGER NOT NULL, node INTEGER NOT NULL) STRICT"],
	open(file) {
		const plan = statement(file, "INSERT INTO job VALUES (?, ?, ?)");
		const done = statement(file, "DELETE FROM job WHERE id = ?");
		const due = statement(file, "SELECT id FROM job WHERE at <= ? ORDER BY at");
		file.things.register<JobOps>("jobs", {
			plan: ({ node }, id, at) => must(plan.run(id, at, node), "nothing planned"),
			done: (_, id) => must(done.run(id), `There is no job ${id}.`),
		});
		return { due: (now) => due.all(now).map(({ id }) => String(id)) };
	},
};

test("ST7: a new kind is one folder and one name: its writes commit with those of the others", async () => {
	const file = openSqlite(":memory:", "process");
	const { jobs, turns } = openThings(file, { ...THINGS, jobs: jobsInSqlite });
	const bus = createBus({ storage: sqliteStorage(file) });
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
