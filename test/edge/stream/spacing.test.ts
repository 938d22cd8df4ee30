/** How far apart flushes are, over any course of the event loop's load. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	AT_ONCE,
	flushAt,
	type LoopSample,
	nextSpacing,
	type Spacing,
} from "../../../packages/daemon/src/edge/stream/flusher.ts";
import { atEffort } from "../../effort.ts";

const MS_MAX = 60;

const sample: fc.Arbitrary<LoopSample> = fc.record({
	utilisation: fc.double({ min: 0, max: 1, noNaN: true }),
	lateMs: fc.integer({ min: 0, max: 500 }),
});
const after = (samples: readonly LoopSample[], from: Spacing = AT_ONCE): Spacing =>
	samples.reduce((spacing, each) => nextSpacing(spacing, each, MS_MAX), from);
const steady = (utilisation: number, periods: number): LoopSample[] => Array(periods).fill({ utilisation, lateMs: 0 });

/** The spacing, period by period, of a loop whose utilisation follows from the spacing. */
function course(utilisationAt: (ms: number) => number, periods: number): number[] {
	let spacing = AT_ONCE;
	return Array.from({ length: periods }, () => {
		const utilisation = Math.min(1, utilisationAt(spacing.ms));
		spacing = nextSpacing(spacing, { utilisation, lateMs: 0 }, MS_MAX);
		return spacing.ms;
	});
}

const share = fc.double({ min: 0, max: 0.95, noNaN: true });
const writes = fc.double({ min: 0, max: 3, noNaN: true });
const spread = (values: readonly number[]) => Math.max(...values) - Math.min(...values);

describe("spacing", () => {
	it("I11: stays between zero and the limit, and is zero as long as the loop has room", () => {
		fc.assert(
			fc.property(fc.array(sample, { maxLength: 60 }), (samples) => {
				const { ms } = after(samples);
				expect(ms).toBeGreaterThanOrEqual(0);
				expect(ms).toBeLessThanOrEqual(MS_MAX);
				const roomy = samples.map(({ utilisation, lateMs }) => ({ utilisation: utilisation * 0.94, lateMs }));
				expect(after(roomy).ms).toBe(0);
			}),
			{ numRuns: atEffort(2000) },
		);
	});

	it("reaches the limit while the loop is busy, soon when it is late, and is gone four seconds after it has room", () => {
		fc.assert(
			fc.property(fc.array(sample, { maxLength: 60 }), (samples) => {
				const before = after(samples);
				expect(after(steady(1, 20), before).ms).toBe(MS_MAX);
				expect(after(Array(5).fill({ utilisation: 1, lateMs: MS_MAX }), before).ms).toBe(MS_MAX);
				expect(after(steady(0.5, 40), before).ms).toBe(0);
			}),
			{ numRuns: atEffort(2000) },
		);
	});

	it("a pause in a loop that has room changes nothing", () => {
		const pause = { utilisation: 1, lateMs: 500 };
		expect(after([...steady(0.2, 20), pause, ...steady(0.2, 20)])).toMatchObject({ ms: 0 });
	});

	it("comes to rest where spacing lowers the load by degrees", () => {
		fc.assert(
			fc.property(share, writes, fc.integer({ min: MS_MAX / 3, max: 100 }), (fixed, each, tokenMs) => {
				const settled = course((ms) => fixed + each / (1 + ms / tokenMs), 600).slice(400);
				expect(spread(settled)).toBe(0);
			}),
			{ numRuns: atEffort(1000) },
		);
	});

	/** Up and down again. */
	const SWING_MAX = MS_MAX / 6 + MS_MAX / 30 + 1e-9;

	it("swings by one step up and one down at most where a step of spacing halves the load", () => {
		fc.assert(
			fc.property(share, writes, fc.integer({ min: 5, max: 100 }), (fixed, each, tokenMs) => {
				const settled = course((ms) => fixed + each / Math.max(1, Math.floor(ms / tokenMs)), 1000).slice(600);
				expect(spread(settled)).toBeLessThanOrEqual(SWING_MAX);
			}),
			{ numRuns: atEffort(1000) },
		);
	});

	it("swings no more than that where tokens come so fast that a step down undoes a step up", () => {
		fc.assert(
			fc.property(share, writes, fc.integer({ min: 1, max: MS_MAX / 3 }), (fixed, each, tokenMs) => {
				const settled = course((ms) => fixed + each / (1 + ms / tokenMs), 1000).slice(600);
				expect(spread(settled)).toBeLessThanOrEqual(SWING_MAX);
			}),
			{ numRuns: atEffort(1000) },
		);
	});

	it("a log's flushes lie one spacing apart, the next one never further away", () => {
		const place = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
		fc.assert(
			fc.property(place, fc.integer({ min: 1, max: 60 }), fc.nat({ max: 1e9 }), (at, ms, now) => {
				const next = flushAt(at, ms, now);
				expect(next).toBeGreaterThanOrEqual(now - 1e-6);
				expect(next).toBeLessThan(now + ms + 1e-6);
				expect(flushAt(at, ms, next + 1e-3)).toBeCloseTo(next + ms, 5);
			}),
			{ numRuns: atEffort(2000) },
		);
	});
});
