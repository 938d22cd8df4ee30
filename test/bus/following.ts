/** The contract of following (ST19, ST22): who may declare whom dead, and what another node's commits cost those who read here. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bus, type BusOptions, createBus, follow, type LogSpec } from "../../packages/daemon/src/bus/bus.ts";
import type { LogChanges, Storage, StoreNotification } from "../../packages/daemon/src/bus/storage.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";
import type { StorageUnderTest } from "./contract.ts";
import { note } from "./notes.ts";
import { steps, turn, written } from "./remove.ts";

const run = (log: string, chain?: string): LogSpec => ({ log, kind: "run", chain });

const LEASE_MS = 10_000;

/** A store that counts what it is asked, and whose notifications and looks can be lost. */
function observed(inner: Storage) {
	const asked: Record<string, number> = {};
	const changes: LogChanges[] = [];
	const state = { isDeaf: false, isMute: false };
	const instead: Partial<Storage> = {
		notify: (notification) => (state.isMute ? undefined : inner.notify(notification)),
		follow(node, follower) {
			const onChange = (change: LogChanges) => {
				changes.push(change);
				follower.onChange(change);
			};
			const following = inner.follow(node, { ...follower, wanted: follower.wanted, onChange });
			return { ...following, look: () => (state.isDeaf ? undefined : following.look()) };
		},
	};
	const storage = new Proxy(inner, {
		get(_, name: keyof Storage) {
			const method = (instead[name] ?? inner[name].bind(inner)) as (...args: unknown[]) => unknown;
			return (...args: unknown[]) => {
				asked[name] = (asked[name] ?? 0) + 1;
				return method(...args);
			};
		},
	});
	const reads = () => ["find", "read", "link", "chain", "list"].reduce((sum, name) => sum + (asked[name] ?? 0), 0);
	return { storage, asked, changes, state, reads };
}

/** Reads on in the background. */
function reading(bus: Bus, source: { log: string } | { chain: string }) {
	const records: string[] = [];
	const offsets: number[] = [];
	let ended = false;
	const read = async () => {
		for await (const batch of follow(await bus.cursor(source, 0))) {
			records.push(...batch.records);
			offsets.push(...batch.records.map((_, n) => batch.first + n));
		}
		ended = true;
	};
	// At the end of a test its Bus stops.
	read().catch((cause: unknown) => expect(cause).toMatchObject({ code: "unavailable" }));
	return { records, offsets, ended: () => ended };
}

export function followContract(name: string, make: () => StorageUnderTest): void {
	describe(`Following on ${name}`, () => {
		let store: StorageUnderTest;
		let clock: ManualClock;
		const buses: Bus[] = [];
		const open = () => store.open(() => clock.now());
		const joinOn = (storage: Storage, options: Partial<BusOptions> = {}) => {
			const bus = createBus({ ...quiet, storage, clock, shared: true, ...options });
			buses.push(bus);
			return bus;
		};
		const passing = (what: string, isSo: () => boolean) =>
			until(what, () => {
				clock.advance(100);
				return isSo();
			});
		beforeEach(() => {
			store = make();
			clock = manualClock(1_000_000);
		});
		afterEach(async () => {
			for (const bus of buses.splice(0)) await bus.close();
			await store.dispose();
		});

		it("ST19: after an outage no node expires another for one lease", async () => {
			const storage = open();
			const nodes: number[] = [];
			for (const who of ["a", "b", "c"]) nodes.push((await storage.join(who, false)).node);
			const [a, b, c] = nodes as [number, number, number];
			const renew = async (times: number, ...living: number[]) => {
				for (let n = 0; n < times; n++) {
					clock.advance(2000);
					for (const node of living) expect(await storage.renew(node, LEASE_MS)).toBe(true);
				}
			};
			await renew(6, a, b, c);
			// The store is away, and no node can renew.
			clock.advance(3 * LEASE_MS);
			expect(await storage.expire(a, LEASE_MS)).toEqual([]);
			expect(await storage.renew(b, LEASE_MS)).toBe(true);
			await renew(4, a, b);
			expect(await storage.expire(a, LEASE_MS)).toEqual([]);
			await renew(1, a, b);
			expect(await storage.expire(a, LEASE_MS)).toEqual([c]);
			expect(await storage.renew(c, LEASE_MS)).toBe(false);
			expect(await storage.expire(c, 0)).toEqual([]);
			expect(await storage.renew(b, LEASE_MS)).toBe(true);
		});

		it("ST19: a node expires none before it has lived for a lease, and a gap in its renewals restarts the count", async () => {
			const storage = open();
			const { node: silent } = await storage.join("silent", false);
			clock.advance(2 * LEASE_MS);
			const { node } = await storage.join("new", false);
			expect(await storage.expire(node, LEASE_MS)).toEqual([]);
			clock.advance(LEASE_MS / 2);
			expect(await storage.renew(node, LEASE_MS)).toBe(true);
			clock.advance(LEASE_MS / 2 + 1);
			expect(await storage.expire(node, LEASE_MS)).toEqual([]);
			for (let n = 0; n < 2; n++) {
				clock.advance(LEASE_MS / 2);
				expect(await storage.renew(node, LEASE_MS)).toBe(true);
			}
			expect(await storage.expire(node, LEASE_MS)).toEqual([silent]);
		});

		it("ST22: 200 followed logs cost nothing beyond one read of each commit", async () => {
			const writing = joinOn(open());
			const { storage, changes, reads } = observed(open());
			const bus = joinOn(storage);
			const names = Array.from({ length: 200 }, (_, n) => `log ${n}`);
			const writers = await Promise.all(names.map((log) => writing.create(run(log), ["begin"])));
			const readers = names.map((log) => reading(bus, { log }));
			await until("all are open", () => readers.every(({ records }) => records.length === 1));
			await steps(clock, 3, 100);
			const before = { reads: reads(), changes: changes.length, commits: writing.stats.commits };
			for (let n = 0; n < 10; n++) {
				for (const writer of writers) writer.append(`record ${n}`);
				await Promise.all(writers.map((writer) => writer.flushed()));
			}
			await passing("all is read", () => readers.every(({ records }) => records.length === 11));
			expect(reads() - before.reads).toBe(0);
			expect(changes.length - before.changes).toBeLessThanOrEqual(writing.stats.commits - before.commits);
			for (const { offsets } of readers) expect(offsets).toEqual(Array.from({ length: 11 }, (_, n) => n + 1));
		});

		it("ST22: 500 idle readers of sessions ask nothing because another daemon commits, and hear of their own link", async () => {
			const writing = joinOn(open());
			const { storage, reads } = observed(open());
			const bus = joinOn(storage);
			const readers = Array.from({ length: 500 }, (_, n) => reading(bus, { chain: `session:${n}` }));
			await steps(clock, 5, 100);
			const before = reads();
			const other = await writing.create(run("other", "session:other"), ["begin"]);
			for (let n = 0; n < 20; n++) await written(other, `record ${n}`);
			await steps(clock, 20, 100);
			expect(reads() - before).toBe(0);
			await (await writing.create(run("own", "session:7"), ["1"])).seal(["2"]);
			await passing("its reader has it", () => readers[7]!.records.length === 2);
			expect(readers.filter(({ records }) => records.length > 0)).toHaveLength(1);
			expect(reads() - before).toBeLessThan(10);
		});

		it("ST22: a lost notification is made up for by the next look", async () => {
			const muted = observed(open());
			const writing = joinOn(muted.storage);
			const bus = joinOn(open());
			const writer = await writing.create(run("a", "session:s"), ["1"]);
			const readers = [reading(bus, { log: "a" }), reading(bus, { chain: "session:s" })];
			await until("the first record", () => readers.every(({ records }) => records.length === 1));
			muted.state.isMute = true;
			await written(writer, "2");
			await turn();
			// A remote store also polls by its own clock.
			if (!store.isRemote) expect(readers.map(({ records }) => records.length)).toEqual([1, 1]);
			clock.advance(50);
			await until("the look", () => readers.every(({ records }) => records.length === 2));
			await writer.seal(["3"]);
			await (await writing.create(run("b", "session:s"), ["4"])).seal([]);
			clock.advance(50);
			await until("the end and the next link", () => readers[0]!.ended() && readers[1]!.records.length === 4);
		});

		it("ST22, I4: commits that were removed before they were read are looked up once, and nothing is lost", async ({
			skip,
		}) => {
			skip(
				store.isRemote === true,
				"it polls by its own clock, so that it cannot be kept from reading; see postgres.test.ts",
			);
			const muted = observed(open());
			const writing = joinOn(muted.storage, { limits: { tidyMs: 1000, segmentCharsMax: 40, segmentCharsMin: 40 } });
			const { storage, state, changes, reads } = observed(open());
			const bus = joinOn(storage);
			const writer = await writing.create(run("a"), ["0"]);
			const log = reading(bus, { log: "a" });
			const chain = reading(bus, { chain: "session:s" });
			await until("the first record", () => log.records.length === 1);
			muted.state.isMute = true;
			state.isDeaf = true;
			for (let n = 1; n < 12; n++) {
				await written(writer, `record ${n}`);
				await steps(clock, 1, 1000);
			}
			await (await writing.create(run("b", "session:s"), ["link"])).seal([]);
			await writer.seal(["end"]);
			await steps(clock, 8, 1000);
			await written(await writing.create(run("c"), ["last"]), "row");
			await steps(clock, 2, 100);
			expect([log.records.length, chain.records.length]).toEqual([1, 0]);
			const before = reads();
			state.isDeaf = false;
			clock.advance(50);
			await until("all of it", () => log.ended() && chain.records.length === 1);
			expect(log.records).toEqual(["0", ...Array.from({ length: 11 }, (_, n) => `record ${n + 1}`), "end"]);
			expect(changes.filter(({ missed }) => missed)).toHaveLength(1);
			expect(reads() - before).toBeLessThan(25);
		});

		it("I4: a log that is taken over by a third daemon is read on without a gap or a duplicate", async () => {
			const deaf = observed(open());
			const [one, two] = [joinOn(open()), joinOn(deaf.storage)];
			const writer = await one.create(run("a", "session:s"), ["1"]);
			const readers = [reading(two, { log: "a" }), reading(two, { chain: "session:s" })];
			await written(writer, "2");
			await until("the first records", () => readers.every(({ records }) => records.length === 2));
			const third = joinOn(open());
			expect(await third.expire(0)).toContain(one.node);
			const taken = await third.reopen("a");
			await written(taken, "3");
			await taken.seal(["4"]);
			writer.append("never");
			await expect(writer.flushed()).rejects.toMatchObject({ refusal: "fenced" });
			await passing("the end", () => readers[0]!.ended() && readers[1]!.records.length === 4);
			for (const { records, offsets } of readers)
				expect({ records, offsets }).toEqual({ records: ["1", "2", "3", "4"], offsets: [1, 2, 3, 4] });
		});

		it("ST22: one notification is under way at a time; the newest commit and all topics go with the next", async () => {
			const sent: (StoreNotification & { answer(): void })[] = [];
			let isSlow = true;
			const storage = new Proxy(open(), {
				get: (inner, name: keyof Storage) =>
					name === "notify"
						? (given: StoreNotification) =>
								isSlow ? new Promise<void>((answer) => sent.push({ ...given, answer })) : undefined
						: (inner[name] as (...args: unknown[]) => unknown).bind(inner),
			});
			const bus = joinOn(storage);
			for (const [n, topic] of ["a", "b", "c", "b"].entries()) await bus.write([{ ...note.add(`${n}`), topic }]);
			await bus.write([note.add("no topic")]);
			expect(sent.map(({ n, topics }) => [n, [...topics]])).toEqual([[1, ["a"]]]);
			sent[0]!.answer();
			await until("the next one", () => sent.length === 2);
			expect([sent[1]!.n, [...sent[1]!.topics]]).toEqual([5, ["b", "c"]]);
			sent[1]!.answer();
			await turn();
			expect(sent).toHaveLength(2);
			// The node leaves with one more.
			isSlow = false;
		});

		it("ST22: a daemon that is alone neither follows, looks, renews nor notifies", async () => {
			const { storage, asked } = observed(open());
			const bus = joinOn(storage, { shared: false });
			const writer = await bus.create(run("a"), ["1"], { with: [{ ...note.add("a"), topic: "t" }] });
			const heard: number[] = [];
			bus.listen("t", () => heard.push(clock.now()));
			await bus.call("t");
			for (let n = 0; n < 5; n++) {
				await written(writer, `${n}`);
				clock.advance(1000);
			}
			expect(heard).toHaveLength(1);
			const { follow: followed, notify, renew } = asked;
			expect({ followed, notify, renew }).toEqual({ followed: undefined, notify: undefined, renew: undefined });
		});
	});
}
