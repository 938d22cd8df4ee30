/** Back-off and sleeping. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { backoffMs, jittered, sleep } from "../../packages/protocol/src/retry.ts";
import { manualClock } from "../clock.ts";

const rules = fc.record({
	firstMs: fc.integer({ min: 1, max: 60_000 }),
	maxMs: fc.integer({ min: 1, max: 3_600_000 }),
});

it("a back-off begins with the first wait, doubles, and never exceeds the longest", () => {
	fc.assert(
		fc.property(rules, fc.nat(100), (backoff, failures) => {
			const { firstMs, maxMs } = backoff;
			const [wait, next] = [backoffMs(backoff, failures), backoffMs(backoff, failures + 1)];
			expect(backoffMs(backoff, 0)).toBe(Math.min(firstMs, maxMs));
			expect(wait).toBeLessThanOrEqual(maxMs);
			expect(next === wait * 2 || next === maxMs).toBe(true);
		}),
	);
	expect(backoffMs({ firstMs: 10, maxMs: 100 }, -1)).toBe(10);
});

it("jitter changes a wait by at most a quarter", () => {
	fc.assert(
		fc.property(fc.nat(1_000_000), fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), (ms, random) => {
			expect(jittered(ms, random)).toBeGreaterThanOrEqual(ms * 0.75);
			expect(jittered(ms, random)).toBeLessThanOrEqual(ms * 1.25);
		}),
	);
});

it("a sleep ends with its time or its signal, and leaves no timer and no listener", async () => {
	const clock = manualClock();
	const listeners = new Set<unknown>();
	const stop = new AbortController();
	const { signal } = stop;
	const { addEventListener, removeEventListener } = signal;
	signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
		listeners.add(listener);
		addEventListener.call(signal, type, listener);
	};
	signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
		listeners.delete(listener);
		removeEventListener.call(signal, type, listener);
	};
	let ended = 0;
	const count = () => void ended++;
	void sleep(clock, 100, signal).then(count);
	clock.advance(99);
	await Promise.resolve();
	expect(ended).toBe(0);
	clock.advance(1);
	await expect.poll(() => ended).toBe(1);
	expect(listeners.size).toBe(0);
	const aborted = sleep(clock, 1_000_000, signal);
	stop.abort();
	await aborted;
	expect(listeners.size).toBe(0);
	await sleep(clock, 1_000_000, signal);
});
