/** The rules behind the figures: when a token counts as late, what the durable baseline syncs, how goals are judged. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openSyncedLog } from "../../bench/bare-log.ts";
import engine from "../../bench/engine.ts";
import { type Comparison, compare, comparisonTable, type Figure } from "../../bench/figure.ts";
import { type Cell, growthRows, shortOf } from "../../bench/lines/growth.ts";
import { nowUs, paced, rhythmOf, textOf } from "../../bench/pace.ts";
import { checkoutIn } from "../../bench/processes.ts";

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

	it("asks in words for what is read from them", () => {
		const rhythm = { tokens: 70, rate: 0, go: "/a", end: "/b", burst: 32 };
		expect(rhythmOf(textOf(rhythm))).toEqual(rhythm);
		expect(rhythmOf(textOf({ tokens: 1, rate: 50 }))).toEqual({ tokens: 1, rate: 50 });
	});

	it.each([
		[0, [1, 1, 1]],
		[2, [2, 1]],
	])("an engine asked for bursts of %i yields %j tokens at a time", async (burst, expected) => {
		const text = textOf({ tokens: 3, rate: 0, ...(burst > 0 && { burst }) });
		const sizes: number[] = [];
		const { signal } = new AbortController();
		for await (const yielded of engine.run({ messages: [{ text }] }, { signal })) sizes.push([yielded].flat().length);
		expect(sizes).toEqual(expected);
	});
});

describe("bench: the synced log of the bare server", () => {
	it("calls back in order, after the text is in the file; what comes meanwhile forms the next batch", async () => {
		const folder = mkdtempSync(join(tmpdir(), "nexus-bench-test-"));
		try {
			const path = join(folder, "log");
			const { append } = openSyncedLog(path);
			const seen: string[] = [];
			const see = (name: string) => () => seen.push(`${name}: ${readFileSync(path, "utf8")}`);
			let later: Promise<void> | undefined;
			append("a", () => {
				see("a")();
				later = append("c", see("c")).synced;
			});
			await append("b", see("b")).synced;
			await later;
			expect(seen).toEqual(["a: ab", "b: ab", "c: abc"]);
		} finally {
			rmSync(folder, { recursive: true });
		}
	});
});

describe("bench: two builds", () => {
	it("are compared by name, over all turns and turn by turn", () => {
		const comparisons = new Map<string, Comparison>();
		const figure = (name: string, value: number): Figure => ({ name, unit: "ms", value });
		compare(comparisons, [figure("a", 1), figure("only here", 1)], [figure("a", 2), figure("only there", 1)]);
		compare(comparisons, [figure("a", 3)], [figure("a", 2)]);
		const [, , ...rows] = comparisonTable(comparisons).split("\n");
		expect(rows.map((row) => row.split("|").map((cell) => cell.trim()))).toEqual([
			["", "a", "2 ms", "2 ms", "1×", "0.5 · 1.5", ""],
		]);
	});

	it("are found in a package, and in a repository that is one package", () => {
		const folder = mkdtempSync(join(tmpdir(), "nexus-bench-test-"));
		onTestFinished(() => rmSync(folder, { recursive: true }));
		expect(checkoutIn(folder).built).toBe(join(folder, "dist/cli/main.js"));
		mkdirSync(join(folder, "packages/daemon"), { recursive: true });
		expect(checkoutIn(folder).built).toBe(join(folder, "packages/daemon/dist/cli/main.js"));
	});
});

describe("bench: the verdicts of growth", () => {
	const goals = { p50Ms: 5, p99Ms: 60, cpuRatio: 1.4, residentMb: 200 };
	const met = { p50Ms: 5, p99Ms: 60, cpuRatio: 1.4, residentMb: 200, delivered: 100 };

	it("passes what is at its goal and names what is beyond it", () => {
		expect(shortOf(met, goals)).toEqual([]);
		expect(shortOf({ ...met, p99Ms: 61, residentMb: 201 }, goals)).toEqual(["p99", "RSS"]);
		expect(shortOf({ ...met, cpuRatio: 9 }, { p50Ms: 5, p99Ms: 60, residentMb: 200 })).toEqual([]);
	});

	it("does not pass what was not measured or not delivered", () => {
		const nothing = { p50Ms: Number.NaN, p99Ms: Number.NaN, cpuRatio: Number.NaN, residentMb: Number.NaN };
		expect(shortOf({ ...nothing, delivered: 99.9 }, goals)).toEqual(["delivered", "p50", "p99", "CPU", "RSS"]);
	});

	it("says when the load client was the limit", () => {
		const memory = { heapUsedMb: 1, heapTotalMb: 1, arrayBuffersMb: 1 };
		const cell: Cell = {
			...met,
			streams: 1,
			rate: 1,
			server: "Nexus",
			cpuUs: 1,
			tokensPerSecond: 1,
			memory,
			clientBusy: 95,
		};
		expect(growthRows([cell]).at(-1)).toContain("95 % (full)");
	});
});
