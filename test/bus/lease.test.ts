/** The lease of a node: counted from when the last answered renewal was sent, by the daemon's own clock (ST19, I7). */

import { expect, it, onTestFinished } from "vitest";
import { type BusOptions, createBus } from "../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { steps, turn } from "./remove.ts";
import { inSqlite } from "./stores.ts";

const LEASE_MS = 10_000;

/** Nodes of one store, each with a connection that can be cut and a clock that is off by so much. */
function nodes(clock: ManualClock, ...aheadMs: number[]) {
	const store = inSqlite("process");
	const all = aheadMs.map((ahead) => {
		const state = { isCut: false, answer: undefined as Promise<void> | undefined };
		const inner = store.open(() => clock.now());
		const cut =
			<Args extends unknown[], T>(ask: (...args: Args) => T | Promise<T>) =>
			async (...args: Args) => {
				if (state.isCut) throw new Error("the store cannot be reached");
				const answer = await ask(...args);
				await state.answer;
				return answer;
			};
		const storage: Storage = new Proxy(inner, {
			get(_, name: keyof Storage) {
				if (name === "renew") return cut(inner.renew.bind(inner));
				if (name === "expire") return cut(inner.expire.bind(inner));
				return (inner[name] as () => unknown).bind(inner);
			},
		});
		const own = { ...clock, now: () => clock.now() + ahead };
		const options: BusOptions = { ...quiet, storage, clock: own, shared: true };
		return { state, bus: createBus(options) };
	});
	onTestFinished(async () => {
		for (const { bus } of all) await bus.close();
		await store.dispose();
	});
	return all as [(typeof all)[0], ...typeof all];
}

it("I7: the lease lapses after 0.7 of it without an answer, and is held again with the next one", async () => {
	const clock = manualClock(1_000_000);
	const [{ bus, state }] = nodes(clock, 0);
	let lapses = 0;
	bus.lease.onLapse(() => lapses++);
	await steps(clock, 40, 500);
	expect({ held: bus.lease.isHeld, lapses }).toEqual({ held: true, lapses: 0 });
	state.isCut = true;
	const before = bus.lease.silentMs;
	await steps(clock, 1, 6999 - before);
	expect(bus.lease.isHeld).toBe(true);
	await steps(clock, 1, 1);
	expect({ held: bus.lease.isHeld, lapses }).toEqual({ held: false, lapses: 1 });
	let isBack = false;
	void bus.lease.held().then(() => {
		isBack = true;
	});
	await steps(clock, 4, 500);
	expect(isBack).toBe(false);
	state.isCut = false;
	await steps(clock, 5, 500);
	expect({ held: bus.lease.isHeld, isBack, lapses }).toEqual({ held: true, isBack: true, lapses: 1 });
});

it("I7: a renewal counts from when it was sent, not from its answer", async () => {
	const clock = manualClock(1_000_000);
	const [{ bus, state }] = nodes(clock, 0);
	await steps(clock, 8, 500);
	const answer = Promise.withResolvers<void>();
	state.answer = answer.promise;
	await steps(clock, 30, 500);
	expect(bus.lease.isHeld).toBe(false);
	answer.resolve();
	state.isCut = true;
	await turn();
	// The last one was sent at most a renewal ago.
	expect(bus.lease.silentMs).toBeLessThanOrEqual(LEASE_MS / 5);
	expect(bus.lease.isHeld).toBe(true);
});

it("I7: after a pause of the process the lease has lapsed before any timer has run", async () => {
	const clock = manualClock(1_000_000);
	const [{ bus }] = nodes(clock, 0);
	await steps(clock, 4, 500);
	clock.block(LEASE_MS);
	expect(bus.lease.isHeld).toBe(false);
	await steps(clock, 1, 500);
	expect(bus.lease.isHeld).toBe(true);
});

it("ST19: after an outage of the store for both, neither declares the other dead; with clocks 60 s apart neither does it, either", async () => {
	const clock = manualClock(1_000_000);
	const [one, two] = nodes(clock, 60_000, 0) as [ReturnType<typeof nodes>[0], ReturnType<typeof nodes>[0]];
	const expired = async () => [
		...(await one.bus.expire(LEASE_MS).catch(() => [])),
		...(await two.bus.expire(LEASE_MS).catch(() => [])),
	];
	await steps(clock, 60, 500);
	expect(await expired()).toEqual([]);
	one.state.isCut = true;
	two.state.isCut = true;
	await steps(clock, 60, 500);
	expect([one.bus.lease.isHeld, two.bus.lease.isHeld]).toEqual([false, false]);
	one.state.isCut = false;
	await steps(clock, 1, 500);
	expect(await expired()).toEqual([]);
	two.state.isCut = false;
	await steps(clock, 60, 500);
	expect(await expired()).toEqual([]);
	expect([one.bus.lease.isHeld, two.bus.lease.isHeld]).toEqual([true, true]);
	two.state.isCut = true;
	await steps(clock, 30, 500);
	expect(await one.bus.expire(LEASE_MS)).toEqual([two.bus.node]);
});

it("ST22: the lease of a daemon that is alone does not lapse", async () => {
	const clock = manualClock(1_000_000);
	const store = inSqlite("process");
	const bus = createBus({ ...quiet, storage: store.open(() => clock.now()), clock });
	onTestFinished(async () => {
		await bus.close();
		await store.dispose();
	});
	clock.advance(100 * LEASE_MS);
	expect(bus.lease.isHeld).toBe(true);
});
