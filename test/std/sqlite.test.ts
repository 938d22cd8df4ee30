import { expect, test } from "vitest";
import { migrate, openSqlite, SchemaTooNew } from "../../packages/daemon/src/std/sqlite/sqlite.ts";

const steps = ["CREATE TABLE a (x INTEGER)", "ALTER TABLE a ADD COLUMN y INTEGER"];
const columns = (file: ReturnType<typeof openSqlite>) =>
	file.db
		.prepare("SELECT name FROM pragma_table_info('a')")
		.all()
		.map((row) => row.name);

test("migrate runs each step once, per area", () => {
	const file = openSqlite(":memory:", "process");
	migrate(file, "one", steps.slice(0, 1));
	expect(columns(file)).toEqual(["x"]);
	migrate(file, "two", ["CREATE TABLE b (x INTEGER)"]);
	migrate(file, "one", steps);
	migrate(file, "one", steps);
	expect(columns(file)).toEqual(["x", "y"]);
	file.close();
});

test("migrate leaves nothing behind when a step fails", () => {
	const file = openSqlite(":memory:", "process");
	expect(() => migrate(file, "one", [...steps, "NOT SQL"])).toThrow(/syntax/);
	expect(columns(file)).toEqual([]);
	migrate(file, "one", steps);
	expect(columns(file)).toEqual(["x", "y"]);
	file.close();
});

test("migrate refuses a newer file and says which versions", () => {
	const file = openSqlite(":memory:", "process");
	migrate(file, "one", steps);
	expect(() => migrate(file, "one", steps.slice(0, 1))).toThrow(SchemaTooNew);
	expect(() => migrate(file, "one", steps.slice(0, 1))).toThrow(/"one" tables have schema version 2.*up to 1/);
	file.close();
});

test("what a savepoint would restore is kept in memory", () => {
	const file = openSqlite(":memory:", "process");
	expect(file.db.prepare("PRAGMA temp_store").get()).toEqual({ temp_store: 2 });
	file.close();
});
