/** What the figures stand on: when a token counts as late. */

import { describe, expect, it } from "vitest";
import { nowUs, paced } from "../../bench/pace.ts";

describe("bench: the rhythm of tokens", () => {
	it("stamps what a blocked loop makes late with when it was due, and makes up for all of it", async () => {
		const tokens = paced({ tokens: 5, rate: 100 });
		const first = Number((await tokens.next()).value);
		const unblockedUs = first + 100_000;
		while (nowUs() < unblockedUs);
		const stamps: number[] = [];
		for await (const token of tokens) stamps.push(Number(token));
		expect(stamps).toHaveLength(4);
		expect(stamps.every((stamp) => stamp < unblockedUs)).toBe(true);
		const gaps = stamps.slice(1).map((stamp, index) => stamp - (stamps[index] ?? 0));
		for (const gap of gaps) expect(Math.abs(gap - 10_000)).toBeLessThanOrEqual(1);
	});

	it("never stamps a token with a time that has not come", async () => {
		for await (const token of paced({ tokens: 50, rate: 400 })) expect(Number(token)).toBeLessThanOrEqual(nowUs() + 1);
	});
});
