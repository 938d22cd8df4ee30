import fc from "fast-check";
import { expect, test } from "vitest";
import {
	FULL,
	isRested,
	paceOf,
	refuse,
	spend,
	type WhatsAppAllowance,
	waitMs,
} from "../../../packages/platforms/src/whatsapp/pace.ts";

test("a burst goes a second apart, then one message in six seconds", () => {
	let allowance: WhatsAppAllowance = FULL;
	const gaps: number[] = [];
	let now = 1_000_000;
	for (let count = 0; count < 60; count++) {
		allowance = spend(allowance, now);
		const gap = paceOf(allowance, now).targetIntervalMs;
		gaps.push(gap);
		now += gap;
	}
	expect(gaps.slice(0, 15)).toEqual(Array(15).fill(1000));
	expect(gaps.slice(-20)).toEqual(Array(20).fill(6000));
	expect(isRested(allowance, now)).toBe(false);
	expect(isRested(allowance, now + 120_000)).toBe(true);
});

test("at this pace no more messages go than WhatsApp lends and gives back", () => {
	fc.assert(
		fc.property(fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 200 }), (waits) => {
			let allowance: WhatsAppAllowance = FULL;
			let now = 1_000_000;
			const begun = now;
			for (const [index, wait] of waits.entries()) {
				now += Math.max(wait, paceOf(allowance, now).targetIntervalMs);
				allowance = spend(allowance, now);
				expect(index + 1).toBeLessThanOrEqual(45 + (now - begun) / 6000);
			}
		}),
	);
});

test("refusals wait longer and longer, within a limit", () => {
	let allowance = refuse(FULL, 0);
	const waits: number[] = [];
	for (let count = 0; count < 8; count++) {
		waits.push(waitMs(allowance));
		allowance = refuse(allowance, 0);
	}
	expect(waits).toEqual([6000, 12_000, 24_000, 48_000, 96_000, 96_000, 96_000, 96_000]);
	expect(waitMs(refuse(spend(allowance, 0), 0))).toBe(6000);
});
