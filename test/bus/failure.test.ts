/** The Bus with a failing store, and the remains of its journal. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type BusOptions, createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import { openSqlite, type SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { memoryStorage } from "./memory.ts";
import { removeUpTo, steps, turn, written } from "./remove.ts";

/** A Bus on a store whose disk can be filled. */
function fillable(limits: BusOptions["limits"] = {}) {
	const storage = memoryStorage();
	const disk = { full: false };
	const commit = storage.commit.bind(storage);
	storage.commit = (work) => {
		if (disk.full) throw new Error("database or disk is full");
		return commit(work);
	};
	const clock = manualClock();
	return { disk, clock, bus: createBus({ ...quiet, storage, clock, limits }) };
}

describe("a store that refuses commits", () => {
	it("I1: what waits stays invisible, is tried again, and nothing is lost when the disk has room again", async () => {
		const { disk, clock, bus } = fillable();
		const writer = await bus.create({ log: "a", kind: "run" }, ["1"]);
		const cursor = await bus.cursor({ log: "a" }, 1);
		disk.full = true;
		writer.append("2");
		const flushed = writer.flushed();
		await turn();
		expect(bus.healthy).toBe(false);
		writer.append("3");
		clock.advance(1000);
		expect(cursor.next()).toBeUndefined();
		disk.full = false;
		clock.advance(250);
		await flushed;
		expect(bus.healthy).toBe(true);
		expect(cursor.next()).toMatchObject({ first: 2, records: ["2"] });
		await writer.flushed();
		expect(cursor.next()).toMatchObject({ first: 3, records: ["3"] });
		await bus.close();
	});

	it("I3: a start and a take-over wait for room, and fail in the end when there is none", async () => {
		const inner = memoryStorage();
		const full = Object.assign(new Error("database or disk is full"), { errcode: 13 });
		let isFull = false;
		const storage = new Proxy(inner, {
			get(_, name: keyof Storage) {
				const method = (inner[name] as (...args: unknown[]) => unknown).bind(inner);
				if (name !== "join" && name !== "adopt") return method;
				return (...args: unknown[]) => {
					if (isFull) throw full;
					return method(...args);
				};
			},
		});
		const before = createBus({ ...quiet, storage: inner });
		await before.create({ log: "a", kind: "run" }, ["1"]);
		isFull = true;
		const clock = manualClock();
		const bus = createBus({ ...quiet, storage, clock });
		const left = bus.list({ orphaned: true });
		clock.advance(250);
		await turn();
		isFull = false;
		clock.advance(250);
		expect(await left).toMatchObject([{ log: "a" }]);
		isFull = true;
		const reopened = bus.reopen("a");
		await turn();
		isFull = false;
		clock.advance(250);
		expect((await reopened).offset).toBe(1);
		isFull = true;
		const late = createBus({ ...quiet, storage, clock });
		const told = expect(late.list({ orphaned: true })).rejects.toThrow("the disk is full");
		await steps(clock, 130, 250);
		await told;
	});

	it("P4.9: a creation with less patience is given up sooner, and leaves nothing behind; the others wait on", async () => {
		const { disk, clock, bus } = fillable();
		const writer = await bus.create({ log: "a", kind: "run" }, ["1"]);
		disk.full = true;
		writer.append("2");
		const flushed = writer.flushed();
		const refused = expect(bus.create({ log: "b", kind: "run" }, ["1"], { patienceMs: 1000 })).rejects.toMatchObject({
			code: "unavailable",
			message: expect.stringContaining("disk is full"),
		});
		await turn();
		clock.advance(1000);
		await refused;
		expect(bus.healthy).toBe(false);
		disk.full = false;
		clock.advance(250);
		await flushed;
		expect((await bus.list()).map(({ log }) => log)).toEqual(["a"]);
		disk.full = true;
		const alone = expect(bus.create({ log: "b", kind: "run" }, ["1"], { patienceMs: 0 })).rejects.toThrow();
		await alone;
		// A store that has just refused stays unhealthy without a waiting caller; the Bus asks until it answers.
		expect(bus.healthy).toBe(false);
		clock.advance(29_000);
		expect(bus.healthy).toBe(false);
		disk.full = false;
		clock.advance(250);
		expect(bus.healthy).toBe(true);
		await bus.create({ log: "b", kind: "run" }, ["1"]);
		expect(bus.healthy).toBe(true);
		await bus.close();
	});

	it("P4.9: a seal with less patience is given up sooner, and leaves the log open as it was; what was appended is kept", async () => {
		const { disk, clock, bus } = fillable();
		const [writer, other] = await Promise.all(["a", "b"].map((log) => bus.create({ log, kind: "run" }, ["1"])));
		disk.full = true;
		other!.append("2");
		// In the commit that fails, and behind it.
		const refused = { code: "unavailable", message: expect.stringContaining("log a could not be written") };
		for (const waitedMs of [1000, 0]) {
			writer!.append("2");
			const sealed = expect(writer!.seal(["never"], [], 1000)).rejects.toMatchObject(refused);
			expect(() => writer!.append("3")).toThrow(/sealed/);
			await turn();
			clock.advance(waitedMs);
			if (waitedMs === 0) clock.advance(250);
			await sealed;
		}
		expect(writer!.offset).toBe(3);
		disk.full = false;
		clock.advance(250);
		await Promise.all([writer!.flushed(), other!.flushed()]);
		await writer!.seal(["end"], [], 1000);
		const cursor = await bus.cursor({ log: "a" }, 0);
		expect(await cursor.next()).toMatchObject({ records: ["1", "2", "2", "end"] });
		await bus.close();
	});

	it("P4.9: a store that does not even give out ids is waited for, and reported with the same error", async () => {
		const storage = memoryStorage();
		const reserve = storage.reserve.bind(storage);
		let isFull = true;
		storage.reserve = (count) => {
			if (isFull) throw new Error("database or disk is full");
			return reserve(count);
		};
		const clock = manualClock();
		const bus = createBus({ ...quiet, storage, clock });
		const refused = expect(bus.create({ log: "a", kind: "run" }, ["1"], { patienceMs: 0 })).rejects.toMatchObject({
			code: "unavailable",
			message: expect.stringContaining("log a could not be written"),
		});
		await refused;
		const created = bus.create({ log: "a", kind: "run" }, ["1"]);
		await turn();
		isFull = false;
		clock.advance(250);
		await created;
		await bus.close();
	});

	it("I11: after the limit the writers fail, and the log stays for recovery", async () => {
		const { disk, clock, bus } = fillable({ commitRetryMsMax: 5000 });
		const writer = await bus.create({ log: "a", kind: "run" }, ["1"]);
		disk.full = true;
		writer.append("2");
		const flushed = expect(writer.flushed()).rejects.toMatchObject({ code: "unavailable" });
		const created = expect(bus.create({ log: "b", kind: "run" }, ["1"])).rejects.toMatchObject({ code: "unavailable" });
		await turn();
		clock.advance(6000);
		await Promise.all([flushed, created]);
		expect(() => writer.append("3")).toThrow(/could not be written/);
		disk.full = false;
		await bus.create({ log: "b", kind: "run" }, ["1"]);
		expect((await bus.list({ live: true })).map((info) => info.log)).toEqual(["b", "a"]);
		await bus.close();
	});
});

describe("a Bus that closes", () => {
	it("ST16: commits all that waits, however many commits it takes", async () => {
		const storage = memoryStorage();
		const bus = createBus({ ...quiet, storage, limits: { commitTotalCharsMax: 10 } });
		const writers = await Promise.all(["a", "b", "c"].map((log) => bus.create({ log, kind: "run" }, ["1"])));
		for (const writer of writers) writer.append("x".repeat(20));
		const sealed = writers[0]!.seal(["end"]);
		await bus.close();
		await sealed;
		const after = createBus({ ...quiet, storage });
		const heads = new Map((await after.list()).map(({ log, head }) => [log, head]));
		expect(heads).toEqual(
			new Map([
				["a", 3],
				["b", 2],
				["c", 2],
			]),
		);
		await after.close();
	});
});

describe("a store that refuses removals", () => {
	/** Two finished logs of 100 bytes and more, on a disk that can be filled. */
	async function finished(clock = manualClock()) {
		const inner = memoryStorage();
		const disk: { full: boolean; fails?: () => Promise<never> } = { full: false };
		const remove = inner.removeSome.bind(inner);
		inner.removeSome = (id) => {
			if (!disk.full) return remove(id);
			return disk.fails ? disk.fails() : Promise.reject(new Error("database or disk is full"));
		};
		const bus = createBus({ ...quiet, storage: inner, clock });
		for (const log of ["a", "b"]) await (await bus.create({ log, kind: "run" }, ["x".repeat(100)])).seal([]);
		return { bus, disk };
	}

	it("I11: what could not be removed still counts when there is room again", async () => {
		const { bus, disk } = await finished();
		disk.full = true;
		for (let tries = 0; tries < 3; tries++) await expect(bus.retain({ totalBytesMax: 150 })).rejects.toThrow("full");
		disk.full = false;
		expect(await bus.retain({ totalBytesMax: 150 })).toBe(1);
		expect((await bus.list()).map(({ log }) => log)).toEqual(["b"]);
		await bus.close();
	});

	it("P5.8: readers end when the Bus closes although a removal fails", async () => {
		const { bus, disk } = await finished();
		const writer = await bus.create({ log: "live", kind: "run" }, ["1"]);
		const cursor = await bus.cursor({ log: writer.log }, 1);
		let told = 0;
		cursor.onWake(() => told++);
		disk.full = true;
		const asked = Promise.withResolvers<void>();
		const answer = Promise.withResolvers<never>();
		disk.fails = () => {
			asked.resolve();
			return answer.promise;
		};
		const retained = expect(bus.retain({ totalBytesMax: 0 })).rejects.toThrow("full");
		await asked.promise;
		const closed = bus.close();
		answer.reject(new Error("database or disk is full"));
		await Promise.all([closed, retained]);
		expect(told).toBe(1);
	});
});

describe("the journal of the SQLite store", () => {
	let folder: string;
	let file: SqliteFile;
	let clock: ManualClock;
	beforeEach(() => {
		clock = manualClock();
		folder = mkdtempSync(join(tmpdir(), "nexus-journal-"));
		file = openSqlite(join(folder, "bus.db"), "process");
	});
	afterEach(() => {
		file.close();
		rmSync(folder, { recursive: true, maxRetries: 20 });
	});
	/** Another process: the one before left its journal as it was. */
	const open = (limits: BusOptions["limits"] = {}) =>
		createBus({ ...quiet, storage: sqliteStorage(file), clock, limits });
	const rows = (table: string) => Number(file.db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n);

	it("P4: many logs of a tick are one row; rows go once their logs are cut", async () => {
		const bus = open();
		const writers = await Promise.all(
			Array.from({ length: 100 }, (_, i) => bus.create({ log: `w${i}`, kind: "run" }, ["begin"])),
		);
		expect(rows("journal")).toBe(1);
		for (const writer of writers) writer.append("token");
		await writers[0]!.flushed();
		expect(rows("journal")).toBe(2);
		await Promise.all(writers.map((writer) => writer.seal(["end"])));
		expect(rows("segment")).toBe(100);
		clock.advance(1000);
		// The last row stays: it numbers the next one.
		expect(rows("journal")).toBe(1);
		await bus.close();
	});

	it("P4.2: what a removed log left in the journal is never taken for a log that came after it", async () => {
		const first = open();
		await first.create({ log: "idle", kind: "run" }, ["idle 1"]);
		const gone = await first.create({ log: "gone", kind: "run" }, ["secret 1"]);
		gone.append("secret 2");
		await gone.seal([]);
		await removeUpTo(first, "gone");
		expect(rows("journal")).toBeGreaterThan(0);
		const second = open();
		await second.create({ log: "next", kind: "run" }, ["next 1"]);
		const third = open();
		expect(await third.describe("next")).toMatchObject({ head: 1 });
		expect((await third.cursor({ log: "next" }, 0)).next()).toMatchObject({ records: ["next 1"] });
		expect((await third.cursor({ log: "idle" }, 0)).next()).toMatchObject({ records: ["idle 1"] });
		await third.close();
	});

	it("P4: a log that was taken over, and has nothing to cut, is not committed again and again", async () => {
		const first = open({ segmentCharsMax: 1 });
		await first.create({ log: "adopted", kind: "run" }, ["begin"]);
		const bus = open();
		await bus.reopen("adopted");
		const busy = await bus.create({ log: "busy", kind: "run" }, ["begin"]);
		for (let i = 0; i < 4200; i++) await written(busy, "x");
		clock.advance(1000);
		const before = bus.stats.commits;
		for (let i = 0; i < 20; i++) await turn();
		expect(bus.stats.commits - before).toBeLessThan(3);
		await bus.close();
	});

	it("P4: a dead daemon's log that is never adopted does not hold the journal back", async () => {
		await open().create({ log: "left", kind: "run" }, ["begin"]);
		const bus = open();
		const busy = await bus.create({ log: "busy", kind: "run" }, ["begin"]);
		for (let i = 0; i < 5000; i++) await written(busy, `${i}`.padEnd(100));
		await steps(clock, 6, 1000);
		expect(rows("journal")).toBeLessThan(1000);
		expect(await bus.list({ orphaned: true })).toMatchObject([{ log: "left", head: 1 }]);
		await (await bus.reopen("left")).seal(["end"]);
		expect(await bus.describe("left")).toMatchObject({ head: 2 });
		await bus.close();
	});

	it("P4.10: a journal row that is not one is passed over", async () => {
		const first = open();
		await first.create({ log: "a", kind: "run" }, ["1"]);
		file.db.exec("INSERT INTO journal (id, entries) VALUES (7, 'no entry' || char(10) || 'at all' || char(10))");
		const second = open();
		const writer = await second.create({ log: "b", kind: "run" }, ["1"]);
		await (await second.reopen("a")).seal(["2"]);
		await writer.seal([]);
		expect(await second.describe("a")).toMatchObject({ head: 2 });
		expect(await second.describe("b")).toMatchObject({ head: 1 });
		await second.close();
	});

	it("P4.7: a log that was being removed when the process died does not count any more", async () => {
		const first = open({ segmentCharsMax: 50 });
		const writer = await first.create({ log: "big", kind: "run" }, []);
		for (let n = 0; n < 40; n++) await written(writer, "x".repeat(100));
		await writer.seal([]);
		const kept = await first.create({ log: "small", kind: "run" }, ["1"]);
		await kept.seal([]);
		const storage = sqliteStorage(file);
		expect(await storage.removeSome((await storage.find("big"))!.id)).toBe(false);
		const second = open();
		expect(await second.retain({ totalBytesMax: 1000 })).toBe(0);
		expect(await second.describe("small")).toBeDefined();
		await second.close();
	});

	it("P4: an idle log does not hold the journal of busy ones back", async () => {
		const bus = open();
		await bus.create({ log: "idle", kind: "run" }, ["begin"]);
		const busy = await bus.create({ log: "busy", kind: "run" }, ["begin"]);
		for (let i = 0; i < 5000; i++) await written(busy, `${i}`.padEnd(100));
		await steps(clock, 6, 1000);
		expect(rows("journal")).toBeLessThan(1000);
		const again = open();
		expect(await again.describe("idle")).toMatchObject({ head: 1 });
		expect(await again.describe("busy")).toMatchObject({ head: 5001 });
		await bus.close();
	});
});
