/** The contract of the store (ST1–ST25): commits whose outcome comes late or is lost, and two Buses on one store. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bus, type Cursor, createBus, follow, type LogSpec } from "../../packages/daemon/src/bus/bus.ts";
import { type Commit, type Committed, OutcomeUnknown, type Storage } from "../../packages/daemon/src/bus/storage.ts";
import type { NexusError } from "../../packages/protocol/src/protocol.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";
import type { StorageUnderTest } from "./contract.ts";
import { note, noted } from "./notes.ts";
import { expireAll, readAll, steps, turn, written } from "./remove.ts";

const run = (log: string, chain?: string): LogSpec => ({ log, kind: "run", chain: chain || undefined });

/** A store whose commits are answered when the test says so. */
function held(inner: Storage) {
	const waiting: { commit: Commit; answer(how?: "lost" | "never made" | Error): Promise<void> }[] = [];
	const commit = inner.commit.bind(inner);
	const hold = (given: Commit): Promise<Committed> => {
		const { promise, resolve, reject } = Promise.withResolvers<Committed>();
		waiting.push({
			commit: given,
			async answer(how) {
				if (how instanceof Error) reject(how);
				else if (how === "never made") reject(new OutcomeUnknown(new Error("cut")));
				else {
					const committed = await commit(given);
					if (how === "lost") reject(new OutcomeUnknown(new Error("cut")));
					else resolve(committed);
				}
				await turn();
			},
		});
		return promise;
	};
	const storage = new Proxy(inner, {
		get: (_, name: keyof Storage) => (name === "commit" ? hold : methodOf(inner, name)),
	});
	const next = async () => {
		await until("a commit", () => waiting.length > 0);
		return waiting.shift()!;
	};
	return { storage, next, isIdle: () => waiting.length === 0 };
}

const methodOf = (store: Storage, name: keyof Storage) => (store[name] as (...args: unknown[]) => unknown).bind(store);

/** A store that answers each question when the test says so. */
function slowly(inner: Storage) {
	const open: { name: string; answer(): void }[] = [];
	const storage = new Proxy(inner, {
		get(_, name: keyof Storage) {
			const method = methodOf(inner, name);
			if (name === "follow") return method;
			return (...args: unknown[]) =>
				new Promise((resolve) => open.push({ name, answer: () => resolve((async () => method(...args))()) }));
		},
	});
	const answerOne = async () => {
		open.shift()?.answer();
		await turn();
		await turn();
	};
	const answerAll = async (enough = () => open.length === 0) => {
		await turn();
		while (!enough()) await answerOne();
	};
	return { storage, open: () => open.map(({ name }) => name), answerOne, answerAll };
}

export function sharedContract(name: string, make: () => StorageUnderTest): void {
	describe(`Commits on ${name} that take their time`, () => {
		let store: StorageUnderTest;
		let clock: ManualClock;
		let bus: Bus;
		let commits: ReturnType<typeof held>;
		beforeEach(() => {
			store = make();
			clock = manualClock(1000);
			commits = held(store.open(() => clock.now()));
			const limits = { commitRecordsMax: 4, commitCharsMax: 400, commitTotalCharsMax: 100, closeMsMax: 1000 };
			bus = createBus({ ...quiet, storage: commits.storage, clock, limits });
		});
		afterEach(() => store.dispose());
		const create = async (log: string, chain?: string) => {
			const created = bus.create(run(log, chain), ["begin"]);
			await (await commits.next()).answer();
			return created;
		};
		/** A Bus on a store that answers each question when the test says so. */
		const lateBus = (options: Partial<Parameters<typeof createBus>[0]> = {}) => {
			const slow = slowly(store.open(() => clock.now()));
			return { slow, late: createBus({ ...quiet, storage: slow.storage, clock, ...options }) };
		};

		it("ST3: what is appended while a commit is under way goes with the next one, and no waiting caller resolves too soon", async () => {
			const writer = await create("a");
			writer.append("1");
			const first = await commits.next();
			const told: string[] = [];
			void writer.flushed().then(() => told.push("1"));
			writer.append("2");
			void writer.flushed().then(() => told.push("2"));
			expect(writer.offset).toBe(3);
			expect(await readAll(bus, "a")).toEqual(["begin"]);
			expect(commits.isIdle()).toBe(true);
			await first.answer();
			expect(told).toEqual(["1"]);
			expect(await readAll(bus, "a")).toEqual(["begin", "1"]);
			await (await commits.next()).answer();
			expect(told).toEqual(["1", "2"]);
			expect(await readAll(bus, "a")).toEqual(["begin", "1", "2"]);
		});

		it("P4.9, ST1: a lost answer is asked for again, and what was committed is committed once", async () => {
			const writer = await create("a");
			writer.append("1");
			const noted = bus.write([note.add("x")]);
			const first = await commits.next();
			await first.answer("lost");
			writer.append("2");
			clock.advance(250);
			const again = await commits.next();
			expect(again.commit).toMatchObject({ n: first.commit.n, again: true, units: first.commit.units });
			await again.answer();
			await noted;
			await (await commits.next()).answer();
			expect(await readAll(bus, "a")).toEqual(["begin", "1", "2"]);
			expect(await store.notes()).toEqual(["x"]);
		});

		it("ST1: a lost answer that refused a unit is still a refusal, and names where a new log began", async () => {
			const sealed = (await create("one", "session:s")).seal(["end"]);
			await (await commits.next()).answer();
			await sealed;
			const refused = expect(bus.write([note.refuse("no")])).rejects.toMatchObject({ refusal: "conflict" });
			const created = bus.create(run("two", "session:s"), ["begin"]);
			await (await commits.next()).answer("lost");
			clock.advance(250);
			await (await commits.next()).answer();
			await refused;
			await created;
			expect(await bus.describe("two")).toMatchObject({ base: 2, head: 1 });
		});

		it("ST1: while the outcome is unknown the Bus neither gives up nor answers, however long it takes", async () => {
			const writer = await create("a");
			writer.append("1");
			let told = false;
			void writer.flushed().finally(() => (told = true));
			for (let tries = 0; tries < 5; tries++) {
				await (await commits.next()).answer("never made");
				clock.advance(60_000);
			}
			expect(told).toBe(false);
			expect(bus.healthy).toBe(false);
			await (await commits.next()).answer();
			expect(told).toBe(true);
			expect(await readAll(bus, "a")).toEqual(["begin", "1"]);
		});

		it("ST2: a refused unit leaves nothing behind and touches no other; a failure of the store fails all", async () => {
			const writer = await create("a");
			const outcomes = Promise.allSettled([
				bus.write([note.add("x")]),
				bus.write([note.add("half"), note.refuse("no")]),
			]);
			writer.append("1");
			await (await commits.next()).answer();
			expect((await outcomes).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
			const twice = expect(bus.write([note.add("x")])).rejects.toMatchObject({ refusal: "duplicate" });
			await (await commits.next()).answer();
			await twice;
			expect(await store.notes()).toEqual(["x"]);
			const lost = [bus.write([note.add("y")], 0), writer.flushed()];
			const settled = Promise.allSettled(lost);
			await (await commits.next()).answer(new Error("no disk"));
			expect((await settled)[0]).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
			expect(await store.notes()).toEqual(["x"]);
		});

		it("P4.14, ST6: records in the middle of a log commit with writes or not at all, and in order", async () => {
			const writer = await create("a");
			writer.append("1");
			const joint = writer.appendWith(["checkpoint"], [note.add("saved")]);
			writer.append("2");
			expect(writer.offset).toBe(4);
			await (await commits.next()).answer();
			expect(await joint).toBe(3);
			await (await commits.next()).answer();
			const refused = expect(writer.appendWith(["never"], [note.refuse("no")])).rejects.toThrow("no");
			writer.append("3");
			await (await commits.next()).answer();
			await refused;
			await (await commits.next()).answer();
			expect(await readAll(bus, "a")).toEqual(["begin", "1", "checkpoint", "2", "3"]);
			expect(await store.notes()).toEqual(["saved"]);
		});

		it("ST3, ST6: writes that come while a commit is under way wait for their own", async () => {
			const writer = await create("a");
			writer.append("1");
			const first = await commits.next();
			let last = 0;
			const joint = writer.appendWith(["2"], [note.add("x")]).then((offset) => (last = offset));
			await first.answer();
			expect([last, await store.notes()]).toEqual([0, []]);
			await (await commits.next()).answer();
			await joint;
			expect([last, await store.notes(), await readAll(bus, "a")]).toEqual([3, ["x"], ["begin", "1", "2"]]);
		});

		it("ST6: who waits until all is durable does not wait for records that were refused", async () => {
			const writer = await create("a");
			const refused = expect(writer.appendWith(["never", "never"], [note.refuse("no")])).rejects.toThrow("no");
			const before = writer.flushed();
			writer.append("1");
			const after = writer.flushed();
			await (await commits.next()).answer();
			await Promise.all([refused, before]);
			await (await commits.next()).answer();
			await after;
			expect([writer.offset, await readAll(bus, "a")]).toEqual([2, ["begin", "1"]]);
		});

		it("ST1: an impatient caller whose write was never sent fails, although another's outcome is unknown", async () => {
			const writer = await create("a");
			writer.append("1");
			await (await commits.next()).answer("never made");
			const impatient = expect(bus.write([note.add("x")], 100)).rejects.toMatchObject({ code: "unavailable" });
			clock.advance(250);
			await (await commits.next()).answer("never made");
			await impatient;
			clock.advance(250);
			await (await commits.next()).answer();
			expect([await readAll(bus, "a"), await store.notes()]).toEqual([["begin", "1"], []]);
		});

		it("P4.15, ST8: what is in a commit counts as waiting; a writer waits for room, not until all is durable", async () => {
			const writer = await create("a");
			for (const text of ["1", "2", "3", "4"]) writer.append(text);
			const first = await commits.next();
			expect(writer.crowded).toBe(true);
			let room = false;
			void writer.room().then(() => (room = true));
			writer.append("5");
			await turn();
			expect(room).toBe(false);
			await first.answer();
			expect(room).toBe(true);
			expect(writer.crowded).toBe(false);
			await (await commits.next()).answer();
		});

		it("P4.9, ST1: while the store is silent impatient callers fail, unless their write may have been applied", async () => {
			const [writer, other] = [await create("a"), await create("b")];
			writer.append("1");
			const told: string[] = [];
			const tell = (what: string, promise: Promise<unknown>) =>
				promise.then(
					() => told.push(what),
					({ code, message }: NexusError) => told.push(`${what}: ${code}, ${message}`),
				);
			void tell("under way", bus.write([note.add("under way")], 1000));
			const first = await commits.next();
			void tell("patient", bus.write([note.add("patient")]));
			void tell("write", bus.write([note.add("never")], 1000));
			void tell("create", bus.create(run("c"), ["never"], { patienceMs: 1000 }));
			other.append("2");
			void tell("seal", other.seal(["never"], [], 1000));
			clock.advance(999);
			await turn();
			expect(told).toEqual([]);
			clock.advance(250);
			await turn();
			const why = "could not be written: the store does not answer";
			expect(told.toSorted()).toEqual([
				`create: unavailable, log c ${why}`,
				`seal: unavailable, log b ${why}`,
				`write: unavailable, a change ${why}`,
			]);
			told.length = 0;
			await first.answer();
			expect(told).toEqual(["under way"]);
			await (await commits.next()).answer();
			expect(told).toEqual(["under way", "patient"]);
			expect(await store.notes()).toEqual(["under way", "patient"]);
			expect((await bus.list()).map(({ log, head }) => [log, head])).toEqual([
				["b", 2],
				["a", 2],
			]);
			expect(await readAll(bus, "b")).toEqual(["begin", "2"]);
			clock.advance(60_000);
			expect(commits.isIdle()).toBe(true);
		});

		it("P4.9: a store that does not answer a request for ids is reported in time", async () => {
			const { slow, late } = lateBus();
			await slow.answerAll();
			const refused = { code: "unavailable", message: expect.stringContaining("does not answer") };
			const created = expect(late.create(run("a"), ["1"], { patienceMs: 1000 })).rejects.toMatchObject(refused);
			await turn();
			clock.advance(1000);
			await created;
			expect(late.stats.liveLogs).toBe(0);
			await slow.answerAll();
			await late.close();
		});

		it("ST8: a commit has a size; the logs that wait take turns", async () => {
			const writers = [await create("a"), await create("b"), await create("c")];
			for (const writer of writers) writer.append("x".repeat(90));
			const logs = async () => {
				const next = await commits.next();
				await next.answer();
				return next.commit.units.length;
			};
			expect([await logs(), await logs()]).toEqual([2, 1]);
		});

		it("ST13: where a link begins is the store's to say, also before its writer knows", async () => {
			const sealed = (await create("a", "session:s")).seal(["end"]);
			await (await commits.next()).answer();
			await sealed;
			const created = bus.create(run("b", "session:s"), ["begin"]);
			const commit = await commits.next();
			await commit.answer("lost");
			expect(await bus.list({ chain: "session:s", limit: 1 })).toMatchObject([{ log: "b", base: 2, head: 1 }]);
			clock.advance(250);
			await (await commits.next()).answer();
			await created;
		});

		it("ST17: what is durable counts although its writer does not know yet, and readers continue from it", async () => {
			const writer = await create("a", "session:s");
			const sealed = writer.seal(["end"], [note.add("a ended")]);
			await (await commits.next()).answer("lost");
			const { newest, head, answer } = await bus.describeChainWith("session:s", noted.all());
			expect(newest).toMatchObject({ log: "a", head: 2, sealedAt: clock.now() });
			expect([head, answer]).toEqual([2, ["a ended"]]);
			const cursor = await bus.cursor({ chain: "session:s" }, head);
			expect(await cursor.next()).toBeUndefined();
			clock.advance(250);
			await (await commits.next()).answer();
			await sealed;
			const created = bus.create(run("b", "session:s"), ["next"]);
			await (await commits.next()).answer();
			await created;
			expect(await cursor.next()).toMatchObject({ first: 3, records: ["next"] });
			cursor.close();
		});

		it("ST13: a name and a chain are taken before anything is awaited", async () => {
			const first = bus.create(run("a", "session:s"), ["1"]);
			await expect(bus.create(run("a"), ["2"])).rejects.toMatchObject({ code: "conflict" });
			await expect(bus.create(run("b", "session:s"), ["2"])).rejects.toMatchObject({ code: "conflict" });
			await (await commits.next()).answer();
			await first;
		});

		it("ST16: closing awaits the commit under way, makes one more, and then refuses", async () => {
			const writer = await create("a");
			writer.append("1");
			const first = await commits.next();
			writer.append("2");
			const closed = bus.close();
			expect(() => writer.append("3")).toThrow(/stopping/);
			await first.answer();
			await (await commits.next()).answer();
			await closed;
			expect(commits.isIdle()).toBe(true);
			const after = createBus({ ...quiet, storage: store.open(() => clock.now()), clock });
			expect(await readAll(after, "a")).toEqual(["begin", "1", "2"]);
			await after.close();
		});

		it("ST16: closing awaits every question that is open, and what follows from its answer; then the store is not asked any more", async () => {
			await create("a", "session:s");
			await bus.close();
			const { slow, late } = lateBus({ shared: true });
			await slow.answerAll();
			const left = store.open(() => clock.now());
			await expireAll(left);
			const open = [
				late.describe("a"),
				late.describeChain("session:s"),
				late.describeChainWith("session:s", noted.all()),
				late.list({ live: true }),
				late.call("topic"),
				late.expire(1e9),
				late.reopen("a").catch(() => {}),
				late.retain({ totalBytesMax: 0 }),
				late.cursor({ chain: "session:s" }, 0).then(async (cursor) => cursor.check()),
			];
			await turn();
			expect(new Set(slow.open())).toEqual(
				new Set(["find", "chain", "chainWith", "list", "notify", "expire", "adopt", "totalBytes"]),
			);
			let closed = false;
			const closes = late.close().then(() => (closed = true));
			while (slow.open().length > 1) {
				await slow.answerOne();
				expect(closed).toBe(false);
			}
			await slow.answerAll(() => closed);
			await closes;
			expect(slow.open()).toEqual([]);
			await Promise.allSettled(open);
			const stopped = { code: "unavailable" };
			await expect(late.describe("a")).rejects.toMatchObject(stopped);
			await expect(late.list()).rejects.toMatchObject(stopped);
			await expect(late.call("topic")).rejects.toMatchObject(stopped);
			expect(slow.open()).toEqual([]);
		});

		it("ST16: a store that does not answer a question is not waited for longer than the limit", async () => {
			const { slow, late } = lateBus({ limits: { closeMsMax: 1000 } });
			await slow.answerAll();
			const asked = late.describe("a");
			const closed = late.close();
			await turn();
			clock.advance(1000);
			await closed;
			await slow.answerAll();
			expect(await asked).toBeUndefined();
		});

		it.each<[string, (late: Bus) => unknown]>([
			["a start", () => {}],
			["retention", (late) => late.retain({ totalBytesMax: 0 }).catch(() => {})],
			["a look-up behind a start", (late) => late.list({ orphaned: true }).catch(() => {})],
		])("ST16: nor for %s, and it is one limit for all of it", async (what, ask) => {
			const { slow, late } = lateBus({ limits: { closeMsMax: 1000, commitRetryMs: 1 } });
			if (what === "retention") await slow.answerAll();
			ask(late);
			await turn();
			expect(slow.open()).not.toEqual([]);
			let isClosed = false;
			const closed = late.close().then(() => (isClosed = true));
			await turn();
			clock.advance(999);
			await turn();
			expect(isClosed).toBe(false);
			// The limit is used up, so nothing else is waited for.
			for (let n = 0; n < 9 && !isClosed; n++) {
				clock.advance(n === 0 ? 1 : 0);
				await turn();
			}
			expect(isClosed).toBe(true);
			await closed;
			await slow.answerAll();
		});

		it("P4.9: impatient callers fail while the store does not answer the start", async () => {
			const { slow, late } = lateBus({ limits: { commitRetryMs: 10 } });
			const told = expect(late.write([], 100)).rejects.toThrow("does not answer");
			await turn();
			clock.advance(100);
			await told;
			await slow.answerAll();
			await late.close();
		});

		it("a store that does not answer for a while is not healthy", async () => {
			const writer = await create("a");
			writer.append("1");
			const answer = await commits.next();
			clock.advance(5000);
			expect(bus.healthy).toBe(true);
			clock.advance(1);
			expect(bus.healthy).toBe(false);
			await answer.answer();
			await writer.flushed();
			expect(bus.healthy).toBe(true);
		});

		it("ST16: a store that does not answer is not waited for longer than the limit", async () => {
			const writer = await create("a");
			writer.append("1");
			const flushed = expect(writer.flushed()).rejects.toMatchObject({ code: "unavailable" });
			await commits.next();
			const closed = bus.close();
			clock.advance(1000);
			await closed;
			await flushed;
			clock.advance(60_000);
			expect(commits.isIdle()).toBe(true);
		});
	});

	describe(`Two Buses on ${name}`, () => {
		let store: StorageUnderTest;
		let clock: ManualClock;
		const buses: Bus[] = [];
		/** A daemon that can die: nothing happens there any more, and no other daemon is notified. */
		const joinMortal = () => {
			let isDead = false;
			const after: ManualClock["after"] = (ms, callback) => clock.after(ms, () => isDead || callback());
			const storage = store.open(() => clock.now());
			const bus = createBus({ ...quiet, storage, clock: { ...clock, after }, shared: true });
			const die = () => {
				isDead = true;
			};
			return { bus, die };
		};
		/** `aheadMs`: what its own clock is ahead of the store's. */
		const join = (aheadMs = 0, shared = true) => {
			const own = { ...clock, now: () => clock.now() + aheadMs };
			const limits = { segmentCharsMax: 60, watchMs: 500, idsPerBlock: 2 };
			const bus = createBus({ ...quiet, storage: store.open(() => clock.now()), clock: own, shared, limits });
			buses.push(bus);
			return bus;
		};
		beforeEach(() => {
			store = make();
			clock = manualClock(1_000_000);
		});
		afterEach(async () => {
			for (const bus of buses.splice(0)) await bus.close();
			await store.dispose();
		});
		/** Hints may be lost: time passes until the records are there. */
		const upTo = async (cursor: Cursor, count: number) => {
			const records: string[] = [];
			const over = new AbortController();
			const reading = (async () => {
				for await (const batch of follow(cursor, over.signal)) {
					records.push(...batch.records);
					if (records.length >= count) break;
				}
			})();
			let done = false;
			void reading.finally(() => (done = true));
			await until("all records", () => {
				clock.advance(100);
				return done;
			});
			await reading;
			return records;
		};

		it("ST20, ST21, I4: a log that one writes is read by the other, live and from any offset, with its true head", async () => {
			const [one, two] = [join(), join()];
			const writer = await one.create(run("a"), ["0"]);
			for (let n = 1; n < 12; n++) await written(writer, `record ${n}`);
			expect(await two.describe("a")).toMatchObject({ head: 12 });
			const expected = ["0", ...Array.from({ length: 11 }, (_, n) => `record ${n + 1}`)];
			for (let after = 0; after <= 12; after++) expect(await readAll(two, "a", after)).toEqual(expected.slice(after));
			await expect(two.cursor({ log: "a" }, 13)).rejects.toMatchObject({ code: "invalid" });
			const cursor = await two.cursor({ log: "a" }, 12);
			const following = upTo(cursor, 3);
			await written(writer, "live");
			await writer.seal(["more", "end"]);
			expect(await following).toEqual(["live", "more", "end"]);
			expect(await readAll(two, "a", 10)).toEqual(["record 10", "record 11", "live", "more", "end"].slice(0));
		});

		it("ST21: a reader in another daemon sees the end of a log", async () => {
			const [one, two] = [join(), join()];
			const writer = await one.create(run("a"), ["1"]);
			const cursor = await two.cursor({ log: "a" }, 0);
			const reading = upTo(cursor, Infinity);
			await writer.seal(["2"]);
			expect(await reading).toEqual(["1", "2"]);
		});

		it("ST20: a chain is followed through links that others write", async () => {
			const [one, two] = [join(), join()];
			const following = upTo(await two.cursor({ chain: "session:s" }, 0), 5);
			await (await one.create(run("a", "session:s"), ["1"])).seal(["2"]);
			const second = await two.create(run("b", "session:s"), ["3"]);
			expect(await one.describeChain("session:s")).toEqual({ start: 0, head: 3 });
			await second.seal(["4"]);
			await one.create(run("c", "session:s"), ["5"]);
			expect(await following).toEqual(["1", "2", "3", "4", "5"]);
			expect(await two.describe("c")).toMatchObject({ base: 4 });
		});

		it("ST17: a chain and an answer are the store's, also for a daemon that was declared dead and does not know", async () => {
			const [one, two] = [join(), join()];
			const writer = await one.create(run("a", "session:s"), ["1"]);
			await written(writer, "2");
			const ask = (bus: Bus) => bus.describeChainWith("session:s", noted.all());
			expect(await ask(two)).toMatchObject({ head: 2, newest: { log: "a", head: 2 }, answer: [] });
			expect(await two.expire(0)).toEqual([one.node]);
			const three = join();
			const taken = await three.reopen("a");
			await written(taken, "3");
			expect(await ask(one)).toMatchObject({ head: 3, newest: { log: "a", head: 3 }, answer: [] });
			await taken.seal(["4"], [note.add("a ended")]);
			const ended = { head: 4, newest: { log: "a", head: 4, sealedAt: clock.now() }, answer: ["a ended"] };
			for (const bus of [one, two, three]) expect(await ask(bus)).toMatchObject(ended);
			expect(one.fenced.aborted).toBe(false);
		});

		it("ST13: two that want the same name or the same place in a chain: one of them gets it", async () => {
			const [one, two] = [join(), join()];
			const names = await Promise.allSettled([one.create(run("a"), ["1"]), two.create(run("a"), ["2"])]);
			expect(names.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
			expect(names.find(({ status }) => status === "rejected")).toMatchObject({ reason: { refusal: "duplicate" } });
			const links = await Promise.allSettled([
				one.create(run("b", "session:s"), ["1"]),
				two.create(run("c", "session:s"), ["2"]),
			]);
			expect(links.find(({ status }) => status === "rejected")).toMatchObject({ reason: { refusal: "conflict" } });
		});

		it("ST23: both write many logs at once, and no record goes astray", async () => {
			const both = [join(), join()];
			const logs = Array.from({ length: 12 }, (_, n) => ({ log: `log ${n}`, bus: both[n % 2]! }));
			const writers = await Promise.all(logs.map(({ log, bus }) => bus.create(run(log), [`${log} 1`])));
			for (const writer of writers) writer.append(`${writer.log} 2`);
			await Promise.all(writers.map((writer) => writer.seal([`${writer.log} 3`])));
			for (const { log } of logs)
				for (const bus of both) expect(await readAll(bus, log)).toEqual([1, 2, 3].map((n) => `${log} ${n}`));
		});

		it("P4.13, ST19: who was declared dead writes nothing any more; what it owned is left, and is taken over whole", async () => {
			const [one, two] = [join(), join()];
			const writer = await one.create(run("a"), ["1"]);
			await written(writer, "2");
			expect(await two.list({ orphaned: true })).toEqual([]);
			await expect(two.reopen("a")).rejects.toMatchObject({ refusal: "conflict" });
			const reader = await two.cursor({ log: "a" }, 0);
			expect(await reader.next()).toMatchObject({ records: ["1", "2"] });
			expect(await two.expire(0)).toEqual([one.node]);
			const third = join();
			expect(await third.list({ orphaned: true })).toMatchObject([{ log: "a", head: 2 }]);
			writer.append("never");
			await expect(writer.flushed()).rejects.toMatchObject({ refusal: "fenced" });
			await expect(one.write([note.add("never")])).rejects.toMatchObject({ refusal: "fenced" });
			await expect(one.create(run("b"), ["never"])).rejects.toMatchObject({ refusal: "fenced" });
			const taken = await third.reopen("a");
			expect(taken.offset).toBe(2);
			await taken.seal(["3"]);
			expect(await readAll(third, "a")).toEqual(["1", "2", "3"]);
			expect(await readAll(one, "a")).toEqual(["1", "2", "3"]);
			expect(await store.notes()).toEqual([]);
		});

		it("ST19: taking a log over twice gives the same log", async () => {
			await join().create(run("a"), ["1"]);
			const two = join(0, false);
			const [one, other] = await Promise.all([two.reopen("a"), two.reopen("a")]);
			one.append("2");
			other.append("3");
			await Promise.all([one.flushed(), other.flushed()]);
			expect(await readAll(two, "a")).toEqual(["1", "2", "3"]);
		});

		it("ST19: what is taken over is what its last owner wrote, whatever was read of it before", async () => {
			await join().create(run("a"), ["1"]);
			await join().expire(0);
			const late = join();
			expect(await late.list({ orphaned: true })).toMatchObject([{ head: 1 }]);
			const { bus: between, die } = joinMortal();
			const writer = await between.reopen("a");
			await written(writer, "2");
			die();
			await steps(clock, 10, 500);
			expect(await late.expire(4000)).toContain(between.node);
			expect((await late.reopen("a")).offset).toBe(2);
		});

		it("ST16, ST19: who stops leaves what it owned to the others at once, with all that it wrote", async () => {
			const [one, two] = [join(), join()];
			const writer = await one.create(run("a"), ["1"]);
			const following = upTo(await two.cursor({ log: "a" }, 0), 3);
			expect(await two.list({ orphaned: true })).toEqual([]);
			writer.append("2");
			await one.close();
			expect(await two.list({ orphaned: true })).toMatchObject([{ log: "a", head: 2 }]);
			await (await two.reopen("a")).seal(["3"]);
			expect(await following).toEqual(["1", "2", "3"]);
			expect(await two.expire(0)).toEqual([]);
		});

		it("ST19, ST22: who takes over a link wakes those who wait for it in its chain", async () => {
			const [one, two] = [join(), join()];
			const cursor = await two.cursor({ chain: "session:s" }, 0);
			expect(await cursor.next()).toBeUndefined();
			await one.create({ ...run("a"), chain: "session:s" }, ["1"]);
			await one.close();
			let wakes = 0;
			cursor.onWake(() => wakes++);
			const writer = await two.reopen("a");
			expect(wakes).toBeGreaterThan(0);
			expect((await cursor.next())!.records).toEqual(["1"]);
			const before = wakes;
			await written(writer, "2");
			expect(wakes).toBeGreaterThan(before);
			expect((await cursor.next())!.records).toEqual(["2"]);
		});

		it("ST16: who stops alone is not declared dead: the lock says who follows", async () => {
			const alone = join(0, false);
			await alone.close();
			expect(await expireAll(store.open(() => clock.now()))).toEqual([alone.node]);
		});

		it("ST22: a reader that looks for a while before it listens is woken all the same", async () => {
			const [one, two] = [join(), join()];
			const writer = await one.create(run("a"), ["1"]);
			const cursor = await two.cursor({ log: "a" }, 1);
			await steps(clock, 3, 500);
			const reading = upTo(cursor, 1);
			await written(writer, "2");
			expect(await reading).toEqual(["2"]);
		});

		it("ST19: opening the store under its lock declares all earlier starts dead", async () => {
			const one = join();
			const writer = await one.create(run("a"), ["1"]);
			const two = join(0, false);
			expect(await two.list({ orphaned: true })).toMatchObject([{ log: "a" }]);
			writer.append("never");
			await expect(writer.flushed()).rejects.toMatchObject({ refusal: "fenced" });
			await (await two.reopen("a")).seal(["2"]);
			expect(await readAll(two, "a")).toEqual(["1", "2"]);
		});

		it("ST19: who says in time that it lives is not declared dead", async () => {
			const { bus: one, die } = joinMortal();
			const two = join();
			await one.create(run("a"), ["1"]);
			await steps(clock, 10, 500);
			expect(await two.expire(3000)).toEqual([]);
			die();
			await steps(clock, 10, 500);
			expect(await two.expire(3000)).toEqual([one.node]);
		});

		it("ST22: a reader that was following when a log is taken over continues there", async () => {
			const { bus: one, die } = joinMortal();
			const two = join();
			const writer = await one.create(run("a"), ["1"]);
			const following = upTo(await two.cursor({ log: "a" }, 0), 3);
			await written(writer, "2");
			die();
			await steps(clock, 20, 500);
			expect(await two.expire(5000)).toEqual([one.node]);
			await (await two.reopen("a")).seal(["3"]);
			expect(await following).toEqual(["1", "2", "3"]);
		});

		it("ST22: a daemon is called by a topic, once what it is about is on record; a lost call is made up for", async () => {
			const [one, two] = [join(), join()];
			let heard: string[] = [];
			const hear = async () => {
				heard = await store.notes();
			};
			const unlisten = two.listen("abort:run_1", () => void hear());
			await one.write([note.add("stop run_1")]);
			const others = async () => expect(await store.notes()).toEqual(["stop run_1"]);
			two.listen("abort:run_2", () => void others());
			await one.call("abort:run_1");
			await until("the call", () => {
				clock.advance(100);
				return heard.length > 0;
			});
			expect(heard).toEqual(["stop run_1"]);
			unlisten();
			heard = [];
			await one.call("abort:run_1");
			clock.advance(1000);
			expect(heard).toEqual([]);
		});

		it("ST22: a write that names a topic calls its listeners in every daemon once it is durable, and not when it is refused", async () => {
			const [one, two] = [join(), join()];
			const heard: string[][] = [];
			const hear = async () => void heard.push(await store.notes());
			const listen = (bus: Bus) => bus.listen("told", () => void hear());
			const unlisten = listen(one);
			await one.write([{ ...note.add("a"), topic: "told" }]);
			await until("the call here", () => heard.length > 0);
			unlisten();
			heard.length = 0;
			listen(two);
			const writer = await one.create(run("r"), ["1"], { with: [{ ...note.add("b"), topic: "told" }] });
			// A notification of the first write may come late.
			await until("the call there", () => {
				clock.advance(100);
				return heard.at(-1)?.length === 2;
			});
			expect(heard.at(-1)).toEqual(["a", "b"]);
			const refused = [{ ...note.add("half"), topic: "other" }, note.refuse("no")];
			let calls = 0;
			one.listen("other", () => void calls++);
			await expect(writer.appendWith(["2"], refused)).rejects.toThrow("no");
			await writer.appendWith(["2"], [note.add("c")]);
			expect(calls).toBe(0);
		});

		it("ST24: times that are compared are the store's, although the clocks are a minute apart", async () => {
			const [slow, fast] = [join(-60_000), join(60_000)];
			await (await slow.create(run("a"), ["1"])).seal([]);
			await (await fast.create(run("b"), ["1"])).seal([]);
			expect((await slow.list({})).map(({ sealedAt }) => sealedAt)).toEqual([clock.now(), clock.now()]);
			expect([slow.now(), fast.now()]).toEqual([clock.now(), clock.now()]);
			clock.advance(1000);
			expect(await fast.retain({ ageMsMax: 2000 })).toBe(0);
			clock.advance(2000);
			expect(await slow.retain({ ageMsMax: 2000 })).toBe(2);
		});

		it("ST25: totals are the store's, of all kinds together, and a kind may go sooner than the others", async () => {
			const [one, two] = [join(), join()];
			const sealed = async (bus: Bus, log: string, kind: LogSpec["kind"]) =>
				(await bus.create({ log, kind }, ["x".repeat(100)])).seal([]);
			await sealed(one, "a", "text");
			await sealed(two, "b", "text");
			await sealed(one, "c", "run");
			clock.advance(2000);
			expect(await two.retain({ totalBytesMax: 250 })).toBe(1);
			expect((await two.list({})).map(({ log }) => log)).toEqual(["c", "b"]);
			expect(await one.retain({ ageMsMax: 0, kinds: { run: { ageMsMax: 10_000 } } })).toBe(1);
			expect(await one.retain({ totalBytesMax: 150, kinds: { run: { ageMsMax: 10_000 } } })).toBe(0);
			expect((await two.list({})).map(({ log }) => log)).toEqual(["c"]);
			expect(await one.retain({ ageMsMax: 10_000, kinds: { run: { ageMsMax: 1000 } } })).toBe(1);
			await sealed(one, "job", "job");
			clock.advance(1000);
			await sealed(two, "d", "run");
			expect(await two.retain({ totalBytesMax: 150, kinds: { job: { ageMsMax: 10_000 } } })).toBe(1);
			expect((await two.list({})).map(({ log }) => log)).toEqual(["d"]);
		});
	});
}
