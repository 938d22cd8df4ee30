/** The pause of a whole account, as its processes report it. */

import { expect, it } from "vitest";
import { createRatePause } from "../../../packages/daemon/src/nex/accounts/platform-health.ts";
import { manualClock } from "../../clock.ts";

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

function world() {
	const clock = manualClock(1000);
	const gate = createRatePause(clock);
	const stop = new AbortController();
	const opened: number[] = [];
	const wait = () => void gate.open(stop.signal).then(() => opened.push(clock.now()));
	const pass = async (ms: number) => {
		clock.advance(ms);
		await tick();
	};
	return { gate, stop, opened, wait, pass };
}

it("the longest pause counts, also one that begins during a wait", async () => {
	const { gate, opened, wait, pass } = world();
	expect(gate.pausedUntil).toBeUndefined();
	gate.pause(500);
	gate.pause(100);
	expect(gate.pausedUntil).toBe(1500);
	wait();
	await pass(400);
	gate.pause(300);
	await pass(100);
	expect(opened).toEqual([]);
	await pass(200);
	expect(opened).toEqual([1700]);
	expect(gate.pausedUntil).toBeUndefined();
	wait();
	await pass(0);
	expect(opened).toEqual([1700, 1700]);
});

it("no adapter silences an account for more than an hour at a time, or turns time back", () => {
	const { gate } = world();
	gate.pause(-5);
	expect(gate.pausedUntil).toBeUndefined();
	gate.pause(Number.MAX_SAFE_INTEGER);
	expect(gate.pausedUntil).toBe(1000 + 3_600_000);
});

it("waits end when the daemon stops", async () => {
	const { gate, stop, opened, wait, pass } = world();
	gate.pause(500);
	wait();
	stop.abort();
	await pass(0);
	expect(opened).toEqual([1000]);
});
