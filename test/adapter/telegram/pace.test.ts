import fc from "fast-check";
import { expect, test } from "vitest";
import { exhaust, paceOf, spend, type TelegramAllowance } from "../../../packages/platforms/src/telegram/pace.ts";

/** Writes as fast as the pace allows; answers with the times. */
function writes(direct: boolean, untilMs: number): number[] {
	const times: number[] = [];
	let allowance: TelegramAllowance | undefined;
	for (let now = 1000; now < untilMs; ) {
		const { targetIntervalMs } = paceOf(allowance, direct, now);
		allowance = spend(allowance, direct, now);
		times.push(now);
		now += targetIntervalMs;
	}
	return times;
}

test("never faster than 500 ms, and a short answer at that speed", () => {
	for (const direct of [true, false]) {
		const times = writes(direct, 60_000);
		const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
		expect(Math.min(...gaps)).toBe(500);
		expect(gaps.slice(0, 3)).toEqual([500, 500, 500]);
	}
});

test("a group gets fewer than 20 writes in any minute, however long the answer", () => {
	const times = writes(false, 600_000);
	for (const from of times)
		expect(times.filter((time) => time >= from && time < from + 60_000).length).toBeLessThan(20);
});

test("a private chat settles at one write in 1.1 s", () => {
	const times = writes(true, 120_000);
	expect((times.at(-1) ?? 0) - (times.at(-2) ?? 0)).toBe(1100);
});

test("finals that wait for nothing are paid back: a long answer stays at one write in 1.1 s", () => {
	let allowance: TelegramAllowance | undefined;
	const times: number[] = [];
	for (let now = 1000; now < 300_000; ) {
		const { targetIntervalMs } = paceOf(allowance, true, now);
		// A message is created, and its final comes a moment later.
		for (const at of [now, now + 100]) {
			allowance = spend(allowance, true, at);
			times.push(at);
		}
		now += Math.max(targetIntervalMs, 101);
	}
	for (const from of times.slice(20))
		expect(times.filter((time) => time >= from && time < from + 60_000).length).toBeLessThanOrEqual(60);
});

test("after a refusal a chat is slow, and recovers", () => {
	fc.assert(
		fc.property(fc.boolean(), fc.integer({ min: 0, max: 1e12 }), (direct, now) => {
			const refused = exhaust(now);
			expect(paceOf(refused, direct, now).targetIntervalMs).toBe(direct ? 1100 : 4000);
			expect(paceOf(refused, direct, now + 60_000).targetIntervalMs).toBe(500);
		}),
	);
});
