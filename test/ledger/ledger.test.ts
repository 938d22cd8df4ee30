import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { storeError } from "../../packages/daemon/src/runtime/data/store.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { newEventId, newRunId } from "../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../runtime/folder.ts";
import { eventOf, fullTurn, openLedger, turnOf } from "./rig.ts";

let dir: string;
let path: string;
beforeEach(() => {
	dir = freshFolder();
	path = join(dir, "nexus.db");
});

test("everything is there after the file was closed and opened again", async () => {
	const before = openLedger(path);
	before.write(turnWrites.settle(fullTurn), inboxWrites.accept(eventOf("evt_1")));
	before.file.close();
	const { ledger } = openLedger(path);
	expect(await ledger.turns.get("run_full")).toEqual(fullTurn);
	expect(await ledger.inbox.queued()).toEqual([eventOf("evt_1")]);
});

test("P6.5: ids that are made after a start are greater than those on record, also when the clock was set back", () => {
	const inAnHour = Date.now() + 3_600_000;
	const digits = newRunId(inAnHour).slice(4);
	const next = inAnHour + 3_600_000;
	const before = openLedger(path);
	// As another process made them: this one would not go back by itself.
	const later = `${encoded(next)}${digits.slice(10)}`;
	before.write(turnWrites.settle(turnOf(`run_${later}`)), inboxWrites.accept(eventOf("odd")));
	before.file.close();
	expect(newRunId() < `run_${later}`).toBe(true);
	openLedger(path);
	const made = [newRunId(), newRunId(), newEventId()].map((id) => id.slice(4));
	expect([later, ...made]).toEqual([later, ...made].toSorted());
});

/** The first ten digits of an id of that time. */
const encoded = (time: number): string =>
	Array.from({ length: 10 }, (_, n) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Math.floor(time / 32 ** (9 - n)) % 32]).join(
		"",
	);

test("what was committed is there although the file was never closed", async () => {
	openLedger(path).write(turnWrites.settle(turnOf("run_1")));
	expect(await openLedger(path).ledger.turns.get("run_1")).toEqual(turnOf("run_1"));
});

describe("a store that cannot be used is refused with what to do", () => {
	const failure = (work: () => unknown) => {
		try {
			work();
		} catch (cause) {
			return storeError(cause, path);
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
		const error = failure(() => openLedger(path));
		expect(error.code).toBe("data_loss");
		expect(error.message).toContain(`${path}: the database is damaged`);
	});

	test("damaged in the middle", () => {
		const whole = openLedger(path);
		for (let n = 0; n < 200; n++) whole.write(turnWrites.settle(turnOf(`run_${n}`)));
		whole.file.close();
		const bytes = readFileSync(path);
		bytes.fill(0xa5, 4096, bytes.length - 4096);
		writeFileSync(path, bytes);
		appendFileSync(path, Buffer.alloc(100));
		const error = failure(() => openLedger(path).ledger.turns.list({ limit: 200 }));
		expect(error.code).toBe("data_loss");
	});

	test("in a folder that does not exist", () => {
		const error = failure(() => openLedger(join(dir, "missing", "nexus.db")));
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
		expect(storeError(new Error("odd"), path)).toMatchObject({ code: "internal", message: "odd" });
	});
});
