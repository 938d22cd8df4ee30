/** Bytes that changed on disk: damaged records are reported, never served as good ones. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Bus, createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { quiet } from "../quiet.ts";
import { written } from "./remove.ts";

const LIMITS = { segmentCharsMax: 40 };

function store() {
	const folder = mkdtempSync(join(tmpdir(), "nexus-damage-"));
	onTestFinished(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
	const path = join(folder, "bus.db");
	return {
		/** Leaves the store as a killed process would: nothing is closed. */
		open(): Bus {
			const file = openSqlite(path, "process");
			const bus = createBus({ ...quiet, storage: sqliteStorage(file), limits: LIMITS });
			onTestFinished(async () => {
				await bus.close();
				file.close();
			});
			return bus;
		},
		sql(text: string) {
			const db = new DatabaseSync(path);
			db.exec(text);
			db.close();
		},
	};
}

async function sealed(bus: Bus, log: string, records: string[]): Promise<void> {
	const writer = await bus.create({ log, kind: "run" }, []);
	for (const record of records) await written(writer, record);
	await writer.seal([]);
}

const RECORDS = Array.from({ length: 9 }, (_, n) => `record number ${n}`);

async function readUntilError(bus: Bus, log: string) {
	const cursor = await bus.cursor({ log }, 0);
	const read: string[] = [];
	try {
		for (let batch = await cursor.next(); batch; batch = await cursor.next()) read.push(...batch.records);
		return { read };
	} catch (error) {
		return { read, error };
	} finally {
		cursor.close();
	}
}

describe("damage at rest", () => {
	it.each([
		["a flipped byte", "UPDATE segment SET records = replace(records, 'number 4', 'number 5')"],
		["a wrong place", "UPDATE segment SET log = 9 WHERE records LIKE '%number 4%'"],
		["a lost row", "DELETE FROM segment WHERE records LIKE '%number 4%'"],
	])("P4.12 I2: %s in a segment is an error for the reader, after what is whole before it", async (_, damage) => {
		const { open, sql } = store();
		await sealed(open(), "a", RECORDS);
		sql(damage);
		const { read, error } = await readUntilError(open(), "a");
		expect(read).toEqual(RECORDS.slice(0, read.length));
		expect(read.length).toBeLessThan(5);
		expect(error).toMatchObject({ code: "data_loss", message: expect.stringContaining("records of a") });
	});

	it("P4.12 I9: a reader learns of it before the first record, when that is what is damaged", async () => {
		const { open, sql } = store();
		await sealed(open(), "a", RECORDS);
		sql("UPDATE segment SET records = replace(records, 'number 0', 'number 5')");
		const bus = open();
		const cursor = await bus.cursor({ log: "a" }, 0);
		expect(() => cursor.check()).toThrow(/damaged/);
		const whole = await bus.cursor({ log: "a" }, RECORDS.length);
		expect(whole.check()).toBeUndefined();
	});

	it("P4.12: a log that continues behind a damaged journal row without a gap has lost nothing", async () => {
		const { open, sql } = store();
		const before = open();
		const lost = await before.create({ log: "lost", kind: "run" }, ["one"]);
		const gap = await before.create({ log: "gap", kind: "run" }, ["one"]);
		const whole = await before.create({ log: "whole", kind: "run" }, ["one"]);
		for (const writer of [lost, gap]) writer.append("broken");
		await gap.flushed();
		for (const writer of [gap, whole]) writer.append("two");
		await gap.flushed();
		sql("UPDATE journal SET entries = replace(entries, 'broken', 'brOken')");
		const after = open();
		expect(await readUntilError(after, "lost")).toEqual({ read: ["one"] });
		expect((await after.describe("lost"))?.damaged).toMatch(/damaged/);
		expect(await readUntilError(after, "gap")).toEqual({ read: ["one"] });
		expect((await after.describe("gap"))?.damaged).toMatch(/damaged/);
		expect(await readUntilError(after, "whole")).toEqual({ read: ["one", "two"] });
		expect((await after.describe("whole"))?.damaged).toBeUndefined();
	});

	it("P4.12: a journal row that lost its checksum is not believed", async () => {
		const { open, sql } = store();
		const before = open();
		const writer = await before.create({ log: "live", kind: "run" }, ["one"]);
		await written(writer, "two");
		sql("UPDATE journal SET entries = replace(entries, 'two', 'TWO'), crc = NULL WHERE entries LIKE '%two%'");
		const after = open();
		expect(await readUntilError(after, "live")).toEqual({ read: ["one"] });
		expect((await after.describe("live"))?.damaged).toMatch(/damaged/);
	});

	it("P4.12: a store from before there were checksums opens, and is read as it is", async () => {
		const { open, sql } = store();
		const before = open();
		await sealed(before, "a", RECORDS);
		await before.create({ log: "live", kind: "run" }, ["one", "two"]);
		sql("UPDATE segment SET crc = NULL; UPDATE journal SET crc = NULL");
		expect(await readUntilError(open(), "a")).toEqual({ read: RECORDS });
		sql(`ALTER TABLE segment DROP COLUMN crc; ALTER TABLE journal DROP COLUMN crc; DROP TABLE reserved; DROP TABLE node;
			ALTER TABLE log DROP COLUMN node; ALTER TABLE log DROP COLUMN cut_at; DROP INDEX log_made; ALTER TABLE log DROP COLUMN made; ALTER TABLE journal DROP COLUMN node;
			ALTER TABLE journal DROP COLUMN n; ALTER TABLE journal DROP COLUMN at; ALTER TABLE journal DROP COLUMN refused; ALTER TABLE journal DROP COLUMN changes;
			DROP INDEX log_counted; ALTER TABLE log DROP COLUMN counted_for;
			UPDATE schema_version SET version = 1 WHERE area = 'bus'`);
		const after = open();
		expect(await readUntilError(after, "a")).toEqual({ read: RECORDS });
		expect(await readUntilError(after, "live")).toEqual({ read: ["one", "two"] });
		expect((await after.describe("live"))?.damaged).toBeUndefined();
	});
});
