/** The contract of the Bus (PROTOCOL §4), run on every storage. */

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bus, createBus, follow, type LogSpec } from "../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import type { Reading } from "../../packages/daemon/src/std/write.ts";
import type { Clock } from "../../packages/protocol/src/clock.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { atEffort } from "../effort.ts";
import { quiet } from "../quiet.ts";
import { note, noted } from "./notes.ts";
import { readAll, removeUpTo, written } from "./remove.ts";

export interface StorageUnderTest {
	/** Opens the store; a second call sees what the first one committed, as after a crash. It keeps notes, too. */
	open(now: () => number): Storage;
	/** The notes that are stored, oldest first. */
	notes(): Reading<string[]>;
	/** False when commits fail now and then: then they are tried again at once. */
	patient?: boolean;
	/** True when every call goes to another process: then fewer cases are drawn. */
	isRemote?: boolean;
	dispose(): Reading<void>;
}

/** Work that is to be done at once is done in the next turn of the loop, whatever the clock says. */
const eager = (clock: Clock): Clock => ({
	now: () => clock.now(),
	after(ms, callback) {
		if (ms > 0) return clock.after(ms, callback);
		const turn = setImmediate(callback);
		return () => clearImmediate(turn);
	},
});

const LIMITS = { segmentCharsMax: 200, commitRecordsMax: 8, commitCharsMax: 400, pagesBytesMax: 1000 };

export function busContract(name: string, make: () => StorageUnderTest): void {
	describe(`Bus on ${name}`, () => {
		let store: StorageUnderTest;
		let clock: ManualClock;
		let bus: Bus;
		const openBus = (shared = false, limits = {}) =>
			createBus({
				...quiet,
				storage: store.open(() => clock.now()),
				limits: { ...LIMITS, ...limits, ...(store.patient === false && { commitRetryMs: 0 }) },
				clock: eager(clock),
				shared,
			});
		const run = (log: string, chain?: string): LogSpec => ({ log, kind: "run", chain: chain || undefined });

		beforeEach(async () => {
			store = make();
			clock = manualClock(1000);
			bus = openBus();
			// It has joined before another one does, which it would declare dead.
			await bus.list({ orphaned: true });
		});
		afterEach(async () => {
			await bus.close();
			await store.dispose();
		});

		it("P4 append: records get dense offsets from 1 and are read back in order", async () => {
			const writer = await bus.create(run("a"), ["one", "two"]);
			writer.append("three");
			expect(writer.offset).toBe(3);
			await writer.flushed();
			expect(await readAll(bus, "a", 0)).toEqual(["one", "two", "three"]);
			expect(await bus.describe("a")).toMatchObject({ log: "a", kind: "run", head: 3, base: 0 });
		});

		it("I1: an append is not visible before its commit, and survives a crash once it is", async () => {
			const writer = await bus.create(run("a"), ["one"]);
			const cursor = await bus.cursor({ log: "a" }, 1);
			writer.append("two");
			expect(cursor.next()).toBeUndefined();
			await writer.flushed();
			expect(await cursor.next()).toMatchObject({ first: 2, records: ["two"] });
			const after = openBus();
			expect(await readAll(after, "a", 0)).toEqual(["one", "two"]);
			await after.close();
		});

		it("I1: many appends of one tick share one commit", async () => {
			const writers = await Promise.all(Array.from({ length: 50 }, (_, i) => bus.create(run(`w${i}`), ["begin"])));
			const before = bus.stats.commits;
			for (const writer of writers) for (let i = 0; i < 5; i++) writer.append(`r${i}`);
			await Promise.all(writers.map((writer) => writer.flushed()));
			expect(bus.stats.commits - before).toBe(1);
		});

		it("P4 crowded: a writer is crowded when a commit is full", async () => {
			const writer = await bus.create(run("a"), []);
			for (let i = 0; i < 7; i++) writer.append("x");
			expect(writer.crowded).toBe(false);
			writer.append("x");
			expect(writer.crowded).toBe(true);
			await writer.flushed();
			expect(writer.crowded).toBe(false);
		});

		it("P4 seal: closes the log for good, together with what is written with it", async () => {
			const writer = await bus.create(run("a"), ["one"]);
			await writer.seal(["last"], [note.add("saved")]);
			expect(await store.notes()).toEqual(["saved"]);
			expect(() => writer.append("more")).toThrow(/sealed/);
			await expect(writer.seal([])).rejects.toThrow(/sealed/);
			const cursor = await bus.cursor({ log: "a" }, 0);
			expect(await cursor.next()).toMatchObject({ first: 1, records: ["one", "last"] });
			expect(cursor.ended).toBe(true);
			expect(await bus.describe("a")).toMatchObject({ head: 2, sealedAt: 1000 });
		});

		it("I5, ST2: a write that is refused refuses the seal and leaves the log live; others of the commit are not touched", async () => {
			const [a, b] = await Promise.all([bus.create(run("a"), ["a1"]), bus.create(run("b"), ["b1"])]);
			a.append("a2");
			const refused = a.seal(["a-last"], [note.add("half"), note.refuse("ledger says no")]);
			await Promise.all([expect(refused).rejects.toThrow("ledger says no"), b.seal(["b-last"])]);
			await a.flushed();
			expect(await readAll(bus, "a", 0)).toEqual(["a1", "a2"]);
			expect(await readAll(bus, "b", 0)).toEqual(["b1", "b-last"]);
			expect(await store.notes()).toEqual([]);
			await a.seal(["a-end"]);
			expect(await readAll(bus, "a", 0)).toEqual(["a1", "a2", "a-end"]);
		});

		it("I9: a write that is refused refuses the creation; the name stays free", async () => {
			const refused = bus.create(run("a", "session:s"), ["x"], { with: [note.refuse("no")] });
			await expect(refused).rejects.toThrow("no");
			expect(await bus.describe("a")).toBeUndefined();
			await bus.create(run("a", "session:s"), ["y"]);
			expect(await readAll(bus, "a", 0)).toEqual(["y"]);
		});

		it("P4: names are unique, live or sealed; unknown logs and offsets beyond the end are refused", async () => {
			const writer = await bus.create(run("a"), ["x"]);
			await expect(bus.create(run("a"), [])).rejects.toMatchObject({ code: "conflict" });
			await writer.seal([]);
			await expect(bus.create(run("a"), [])).rejects.toMatchObject({ code: "conflict" });
			await expect(bus.cursor({ log: "nope" }, 0)).rejects.toMatchObject({ code: "not_found" });
			await expect(bus.cursor({ log: "a" }, 2)).rejects.toMatchObject({ code: "invalid" });
			await expect(bus.cursor({ log: "a" }, -1)).rejects.toMatchObject({ code: "invalid" });
			await expect(bus.reopen("a")).rejects.toMatchObject({ code: "not_found" });
		});

		it("I4: resume strictly after any offset gives no gap and no duplicate: live, after the end, after a crash", async () => {
			await fc.assert(
				fc.asyncProperty(
					fc.array(fc.array(fc.string({ unit: "grapheme", maxLength: 60 }), { maxLength: 12 }), { maxLength: 8 }),
					fc.nat(),
					async (bursts, pick) => {
						const log = `p${serial++}`;
						const all = bursts.flat().map((text) => JSON.stringify(text));
						const writer = await bus.create(run(log), []);
						const after = pick % (all.length + 1);
						const live = collect(bus, log, 0);
						for (const burst of bursts) {
							for (const text of burst) writer.append(JSON.stringify(text));
							await writer.flushed();
						}
						expect(await readAll(bus, log, after)).toEqual(all.slice(after));
						const crashed = openBus(true);
						expect(await readAll(crashed, log, after)).toEqual(all.slice(after));
						await crashed.close();
						await writer.seal([]);
						expect(await live).toEqual(all);
						expect(await readAll(bus, log, after)).toEqual(all.slice(after));
					},
				),
				{ numRuns: store.patient === false || store.isRemote ? atEffort(40, 8) : atEffort(160, 40) },
			);
		});

		it("I4: after a crash a live log is reopened and continues with the next offset", async () => {
			const writer = await bus.create(run("a", "session:s"), ["1"]);
			for (let i = 2; i <= 20; i++) writer.append(`${i}`.repeat(20));
			await writer.flushed();
			const after = openBus();
			const again = await after.reopen("a");
			expect(again.offset).toBe(20);
			await again.seal(["end"]);
			expect((await readAll(after, "a", 19)).length).toBe(2);
			expect(await after.list({ live: true })).toEqual([]);
			await after.close();
		});

		it("I6: readers that keep up share one batch object; one that is far behind reads pages and costs no queue", async () => {
			const writer = await bus.create(run("a"), ["begin"]);
			const [fast, twin, slow] = await Promise.all([0, 0, 0].map((after) => bus.cursor({ log: "a" }, after)));
			expect(fast!.next()).toBe(twin!.next());
			for (let i = 0; i < 100; i++) {
				await written(writer, `record ${i} ${"x".repeat(30)}`);
				expect(await fast!.next()).toBe(await twin!.next());
			}
			const seen: string[] = [];
			for (let batch = await slow!.next(); batch; batch = await slow!.next()) {
				seen.push(...batch.records);
				expect(batch.records.join("").length).toBeLessThan(LIMITS.segmentCharsMax * 2 + LIMITS.commitCharsMax);
			}
			expect(seen.length).toBe(101);
		});

		it("I6: readers that are a little behind share one batch object, too", async () => {
			const writer = await bus.create(run("a"), ["begin"]);
			const [one, twin] = await Promise.all([1, 1].map((after) => bus.cursor({ log: "a" }, after)));
			for (const record of ["x", "y", "z"]) await written(writer, record);
			const batch = await one!.next();
			expect(batch!.records).toEqual(["x", "y", "z"]);
			expect(await twin!.next()).toBe(batch);
			await written(writer, "more");
			expect((await readAll(bus, "a", 1)).slice(-2)).toEqual(["z", "more"]);
		});

		it("I6: the tails of all live logs together have a limit: with more logs they become segments earlier", async () => {
			const many = openBus(true, { segmentCharsMax: 4000, segmentCharsMin: 100, tailBytesMax: 8000 });
			const bytesAfter = async (logs: readonly string[]) => {
				const writers = await Promise.all(logs.map((log) => many.create(run(log), [])));
				const before = many.stats.bytes;
				for (const writer of writers) writer.append("x".repeat(1000));
				await Promise.all(writers.map((writer) => writer.flushed()));
				const cut = many.stats.bytes - before;
				await Promise.all(writers.map((writer) => writer.seal([])));
				return cut;
			};
			expect(await bytesAfter(["1", "2"])).toBe(0);
			expect(await bytesAfter(Array.from({ length: 10 }, (_, n) => `many ${n}`))).toBe(10 * 1001);
			await many.close();
		});

		it("P4 wake: a follower is woken by growth and by the end, and not from inside next", async () => {
			const writer = await bus.create(run("a"), ["1"]);
			const cursor = await bus.cursor({ log: "a" }, 1);
			let woken = 0;
			cursor.onWake(() => woken++);
			await written(writer, "2");
			expect(woken).toBe(1);
			await writer.seal([]);
			expect(woken).toBe(2);
			cursor.close();
			expect(bus.stats.cursors).toBe(0);
		});

		it("P4 chain: the links of a chain read as one log with dense offsets that resume anywhere", async () => {
			const expected: string[] = [];
			const early = collectChain(bus, "session:s", 0, 3 * 4 + 1);
			for (let link = 0; link < 3; link++) {
				const writer = await bus.create(run(`r${link}`, "session:s"), [`${link}:begin`]);
				await written(writer, `${link}:a`);
				await writer.seal([`${link}:b`, `${link}:end`]);
				expected.push(`${link}:begin`, `${link}:a`, `${link}:b`, `${link}:end`);
			}
			const last = await bus.create(run("r3", "session:s"), ["3:begin"]);
			expected.push("3:begin");
			expect(await early).toEqual(expected.map((record, index) => [index + 1, record]));
			for (let after = 0; after <= expected.length; after++) {
				const rest = await collectChain(bus, "session:s", after, expected.length - after);
				expect(rest.map(([, record]) => record)).toEqual(expected.slice(after));
			}
			expect(await bus.describeChain("session:s")).toEqual({ start: 0, head: 13 });
			expect(await bus.describe("r2")).toMatchObject({ base: 8, head: 4 });
			await last.seal([]);
		});

		it("P4 chain: one live link at a time; an unknown chain can be followed before it begins", async () => {
			const waiting = collectChain(bus, "session:new", 0, 1);
			const writer = await bus.create(run("a", "session:new"), ["first"]);
			expect(await waiting).toEqual([[1, "first"]]);
			await expect(bus.create(run("b", "session:new"), ["x"])).rejects.toMatchObject({ code: "conflict" });
			await writer.seal([]);
			await bus.create(run("b", "session:new"), ["second"]);
			expect(await collectChain(bus, "session:new", 1, 1)).toEqual([[2, "second"]]);
		});

		it("ST17: a chain, its newest log and an answer are of one moment", async () => {
			const ask = () => bus.describeChainWith("session:s", noted.all());
			expect(await ask()).toEqual({ start: 0, head: 0, answer: [] });
			await (await bus.create(run("a", "session:s"), ["1"])).seal(["2"], [note.add("a ended")]);
			const second = await bus.create(run("b", "session:s"), ["3"], { with: [note.add("b began")] });
			await written(second, "4");
			const live = { log: "b", kind: "run", chain: "session:s", base: 2, head: 2 };
			const notes = ["a ended", "b began"];
			const before = await ask();
			expect(before).toMatchObject({ start: 0, head: 4, newest: live, answer: notes });
			expect(before.newest).not.toHaveProperty("sealedAt");
			expect(before.newest).not.toHaveProperty("id");
			await second.seal([], [note.add("b ended")]);
			const newest = { ...live, sealedAt: clock.now() };
			expect(await ask()).toMatchObject({ start: 0, head: 4, newest, answer: [...notes, "b ended"] });
			await removeUpTo(bus, "b");
			expect(await ask()).toEqual({ start: 4, head: 4, answer: [...notes, "b ended"] });
		});

		it("P4 list: newest first, by kind, chain and state", async () => {
			for (const name of ["a", "b", "c"]) await bus.create(run(name, `session:${name}`), ["x"]);
			await (await bus.reopen("b")).seal([]);
			const names = async (query: object) => (await bus.list(query)).map((info) => info.log);
			expect(await names({})).toEqual(["c", "b", "a"]);
			expect(await names({ live: true })).toEqual(["c", "a"]);
			expect(await names({ live: false })).toEqual(["b"]);
			expect(await names({ chain: "session:a" })).toEqual(["a"]);
			expect(await names({ limit: 1, before: "c" })).toEqual(["b"]);
			expect(await names({ kind: "text" })).toEqual([]);
		});

		it("P4.7: a chain loses its first link, and its offsets never go back", async () => {
			for (const name of ["a", "b"]) await (await bus.create(run(name, "session:s"), ["1", "2"])).seal(["3"]);
			const reader = await bus.cursor({ log: "a" }, 0);
			await removeUpTo(bus, "a");
			expect(await bus.describe("b")).toBeDefined();
			await expect((async () => reader.next())()).rejects.toThrow(/removed/);
			expect(await bus.describeChain("session:s")).toEqual({ start: 3, head: 6 });
			await expect(bus.cursor({ chain: "session:s" }, 0)).rejects.toMatchObject({ code: "expired" });
			await removeUpTo(bus, "b");
			await bus.create(run("d", "session:s"), ["x"]);
			expect(await bus.describe("d")).toMatchObject({ base: 6 });
		});

		it("P4 retain: finished logs go by age and by size, oldest first; live logs are never touched", async () => {
			await bus.create(run("live"), ["x".repeat(500)]);
			for (let i = 0; i < 6; i++) {
				clock.advance(1000);
				const writer = await bus.create(run(`r${i}`), []);
				for (let n = 0; n < 20; n++) await written(writer, `${n}`.padEnd(90, "."));
				await writer.seal([]);
			}
			expect(await bus.retain({ ageMsMax: 4500 })).toBe(1);
			const size = (await bus.list({ live: false })).reduce((sum, info) => sum + info.bytes, 0);
			const removed = await bus.retain({ totalBytesMax: size / 2 + 501 });
			expect(removed).toBeGreaterThanOrEqual(2);
			expect((await bus.list({})).map((info) => info.log)).toEqual(
				["r5", "r4", "live"].slice(0, 6 - 1 - removed).concat("live"),
			);
			expect(await readAll(bus, "r5", 0)).toHaveLength(20);
			expect(await bus.describe("live")).toBeDefined();
		});

		it("P4.16: a log's bytes count for whom it was made, live and sealed, until it is removed", async () => {
			const write = async (log: string, countedFor: string) => {
				const writer = await bus.create({ log, kind: "scenario", countedFor }, []);
				for (let n = 0; n < 5; n++) await written(writer, "x".repeat(150));
				return writer;
			};
			const [one, other] = [await write("a", "shop"), await write("b", "press")];
			expect(await bus.bytesOf("shop")).toBeGreaterThan(300);
			await Promise.all([one.seal([]), other.seal([])]);
			await (await bus.create(run("other"), ["x"])).seal([]);
			expect(await bus.bytesOf("shop")).toBe((await bus.describe("a"))!.bytes);
			expect(await bus.bytesOf("other")).toBe(0);
			expect((await bus.list({}))[1]).toMatchObject({ log: "b", countedFor: "press" });
			const live = await write("c", "shop");
			expect(await bus.removeOf("shop")).toBe(1);
			expect((await bus.list({})).map(({ log }) => log)).toEqual(["c", "other", "b"]);
			await live.seal([]);
			await removeUpTo(bus, "b");
			expect(await bus.bytesOf("press")).toBe(0);
		});

		it("P4.6, P4.7 retain: when the clock was set back a chain still loses its oldest link first, and its offsets stay", async () => {
			const seal = async (log: string, chain?: string) => (await bus.create(run(log, chain), ["1", "2"])).seal(["3"]);
			clock.advance(3_600_000);
			await seal("a", "session:s");
			await seal("other");
			await bus.close();
			clock = manualClock(1000);
			bus = openBus();
			await seal("b", "session:s");
			await seal("c", "session:s");
			const all = (await bus.list({})).reduce((sum, info) => sum + info.bytes, 0);
			expect(await bus.retain({ totalBytesMax: all - 1 })).toBe(1);
			expect(await bus.describeChain("session:s")).toEqual({ start: 3, head: 9 });
			expect((await bus.list({ chain: "session:s" })).map((info) => info.log)).toEqual(["c", "b"]);
			expect((await collectChain(bus, "session:s", 3, 6)).map(([offset]) => offset)).toEqual([4, 5, 6, 7, 8, 9]);
			clock.advance(5000);
			expect(await bus.retain({ ageMsMax: 4000 })).toBe(2);
			expect(await bus.describeChain("session:s")).toEqual({ start: 9, head: 9 });
			await seal("d", "session:s");
			expect(await bus.describe("d")).toMatchObject({ base: 9 });
			expect(await bus.describe("other")).toBeDefined();
		});

		it("P4.7 retain: a reader that was behind learns what it missed, also while the next link is live", async () => {
			for (const log of ["a", "b"]) await (await bus.create(run(log, "session:s"), ["1", "2"])).seal(["3"]);
			const reader = await bus.cursor({ chain: "session:s" }, 0);
			expect(await reader.next()).toMatchObject({ first: 1, count: 3 });
			const late = await bus.cursor({ chain: "session:s" }, 1);
			clock.advance(5000);
			expect(await bus.retain({ ageMsMax: 4000 })).toBe(2);
			const live = await bus.create(run("c", "session:s"), ["1"]);
			const next = async (cursor: typeof reader) => cursor.next();
			await expect(next(reader)).rejects.toMatchObject({ code: "expired" });
			await expect(next(late)).rejects.toMatchObject({ code: "expired" });
			await live.seal([]);
			expect((await collectChain(bus, "session:s", 6, 1)).map(([offset]) => offset)).toEqual([7]);
		});

		it("P4.7 retain: a chain whose newest link is gone first, by whatever way, never counts its offsets again", async () => {
			const storage = store.open(() => clock.now());
			for (const log of ["a", "b"]) await (await bus.create(run(log, "session:s"), ["1", "2"])).seal(["3"]);
			for (const log of ["b", "a"]) expect(await storage.removeSome((await storage.find(log))!.id)).toBe(true);
			expect(await storage.chain("session:s")).toEqual({ start: 6, head: 6 });
		});

		it("P4 close: waiting readers are woken and refused, writers too", async () => {
			const writer = await bus.create(run("a"), ["1"]);
			const reading = expect(collect(bus, "a", 0)).rejects.toMatchObject({ code: "unavailable" });
			writer.append("2");
			await bus.close();
			await reading;
			expect(() => writer.append("3")).toThrow(/stopping/);
			await expect(bus.create(run("b"), [])).rejects.toMatchObject({ code: "unavailable" });
			const again = openBus();
			expect(await readAll(again, "a", 0)).toEqual(["1", "2"]);
			await again.close();
		});
	});
}

let serial = 0;

/** Follows a log to its end. */
async function collect(bus: Bus, log: string, after: number): Promise<string[]> {
	const records: string[] = [];
	for await (const batch of follow(await bus.cursor({ log }, after))) records.push(...batch.records);
	return records;
}

/** Follows a chain until it has seen so many records. */
async function collectChain(bus: Bus, chain: string, after: number, count: number): Promise<[number, string][]> {
	const seen: [number, string][] = [];
	if (count === 0) return seen;
	for await (const batch of follow(await bus.cursor({ chain }, after))) {
		for (const [index, record] of batch.records.entries()) seen.push([batch.first + index, record]);
		if (seen.length >= count) break;
	}
	return seen;
}
