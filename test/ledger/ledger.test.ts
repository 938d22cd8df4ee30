import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sqliteLedger, storeFailure } from "../../src/ledger/ledger.ts";
import { LEDGER_AREA, LEDGER_STEPS } from "../../src/ledger/schema.ts";
import { migrate, openSqlite } from "../../src/std/sqlite.ts";
import { eventOf, fullTurn, ledgerContract, turnOf } from "./contract.ts";

let dir: string;
let path: string;
beforeEach(() => {
	dir = mkdtempSync(join(tmpdir(), "nexus-ledger-"));
	path = join(dir, "nexus.db");
});
afterEach(() => rmSync(dir, { recursive: true }));

const openAt = (at: string) => {
	const file = openSqlite(at, "process");
	return { ledger: sqliteLedger(file), transaction: file.transaction, close: file.close };
};

ledgerContract("ledger in memory", () => openAt(":memory:"));
ledgerContract("ledger in a file", () => openAt(path));

test("everything is there after the file was closed and opened again", () => {
	const before = openAt(path);
	before.ledger.settle(fullTurn);
	before.ledger.accept(eventOf("evt_1"));
	before.close();
	const after = openAt(path);
	expect(after.ledger.turn("run_full")).toEqual(fullTurn);
	expect(after.ledger.queued()).toEqual([eventOf("evt_1")]);
	after.close();
});

test("what was committed is there although the file was never closed", () => {
	const dead = openAt(path);
	dead.ledger.settle(turnOf("run_1"));
	const after = openAt(path);
	expect(after.ledger.turn("run_1")).toEqual(turnOf("run_1"));
	after.close();
	dead.close();
});

test("a store that was made before turns kept signatures and content still opens", () => {
	const file = openSqlite(path, "process");
	migrate(file, LEDGER_AREA, LEDGER_STEPS.slice(0, 3));
	file.db.exec(`INSERT INTO turns VALUES (1, 'run_1', 'main', 'demo', 'completed', 'completed', NULL, NULL, 1, 2, NULL, 3, 4, NULL, NULL);
		INSERT INTO messages VALUES (1, 0, 'assistant', 'run_1.1', NULL, 'answer', NULL, NULL, 'hm');
		INSERT INTO tool_calls VALUES (1, 0, 'c1', 'time', NULL, 'completed', NULL, '"noon"', 0, 1, 2)`);
	file.close();
	const { ledger, close } = openAt(path);
	expect(ledger.turn("run_1")).toMatchObject({
		messages: [{ role: "assistant", text: "answer", messageId: "run_1.1", reasoning: "hm" }],
		toolCalls: [
			{ callId: "c1", name: "time", status: "completed", result: '"noon"', message: 0, startedAt: 1, endedAt: 2 },
		],
	});
	ledger.settle(fullTurn);
	expect(ledger.turn("run_full")).toEqual(fullTurn);
	close();
});

describe("a store that cannot be used is refused with what to do", () => {
	const failure = (work: () => unknown) => {
		try {
			work();
		} catch (cause) {
			return storeFailure(cause, path);
		}
		throw new Error("nothing failed");
	};

	test("written by a newer program", () => {
		const file = openSqlite(path, "process");
		sqliteLedger(file);
		file.db.exec("UPDATE schema_version SET version = 99 WHERE area = 'ledger'");
		const error = failure(() => sqliteLedger(file));
		file.close();
		expect(error.code).toBe("data_loss");
		expect(error.message).toMatch(/nexus\.db: the "ledger" tables have schema version 99, this program knows up to \d/);
	});

	test("not a database", () => {
		writeFileSync(path, "this is a letter, not a database. ".repeat(40));
		const error = failure(() => openAt(path));
		expect(error.code).toBe("data_loss");
		expect(error.message).toContain(`${path}: the database is damaged`);
	});

	test("damaged in the middle", () => {
		const whole = openAt(path);
		for (let n = 0; n < 200; n++) whole.ledger.settle(turnOf(`run_${n}`));
		whole.close();
		const bytes = readFileSync(path);
		bytes.fill(0xa5, 4096, bytes.length - 4096);
		writeFileSync(path, bytes);
		appendFileSync(path, Buffer.alloc(100));
		const error = failure(() => openAt(path).ledger.turns({ limit: 200 }));
		expect(error.code).toBe("data_loss");
	});

	test("in a folder that does not exist", () => {
		const error = failure(() => openAt(join(dir, "missing", "nexus.db")));
		expect(error.code).toBe("unavailable");
		expect(error.message).toContain("permissions");
	});

	test("locked by another process", () => {
		const holder = openSqlite(path, "process");
		sqliteLedger(holder);
		holder.db.exec("BEGIN IMMEDIATE");
		const other = openSqlite(path, "process");
		other.db.exec("PRAGMA busy_timeout = 0");
		const error = failure(() => other.transaction(() => undefined));
		expect(error.code).toBe("conflict");
		other.close();
		holder.close();
	});

	test("anything else keeps its own words", () => {
		expect(storeFailure(new Error("odd"), path)).toMatchObject({ code: "internal", message: "odd" });
	});
});
