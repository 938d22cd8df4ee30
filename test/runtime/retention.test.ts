/** Retention in the background: at its intervals, through failures, and never after a stop. */

import { describe, expect, it } from "vitest";
import type { Bus, Retention } from "../../src/bus/bus.ts";
import { kindRetention } from "../../src/protocol/protocol.ts";
import { keepRetention } from "../../src/runtime/retention.ts";
import { silentLog } from "../../src/std/log.ts";
import { manualClock } from "../clock.ts";

const RULES = { ageDaysMax: 2, totalBytesMax: 1000, sweepIntervalMs: 60_000 };

/** The one method that retention uses. */
const busThat = (retain: (rules: Retention) => Promise<number>) => ({ retain }) as Partial<Bus> as Bus;

/** Lets what was promised happen. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("keepRetention", () => {
	it("sweeps after the start and then at its interval, with the configured rules", async () => {
		const clock = manualClock();
		const swept: Retention[] = [];
		keepRetention(
			busThat(async (rules) => swept.push(rules)),
			RULES,
			clock,
			silentLog,
		);
		expect(swept).toEqual([]);
		clock.advance(30_000);
		await turn();
		expect(swept).toEqual([{ ageMsMax: 2 * 86_400_000, totalBytesMax: 1000, kinds: kindRetention() }]);
		clock.advance(59_999);
		expect(swept).toHaveLength(1);
		clock.advance(1);
		await turn();
		expect(swept).toHaveLength(2);
	});

	it("goes on after a failure, and says so", async () => {
		const clock = manualClock();
		const said: string[] = [];
		let tries = 0;
		const bus = busThat(async () => {
			tries++;
			throw new Error("the disk is full");
		});
		keepRetention(bus, RULES, clock, { ...silentLog, error: (_facts, message) => said.push(message) });
		clock.advance(30_000);
		await turn();
		clock.advance(60_000);
		await turn();
		expect([tries, said.length]).toEqual([2, 2]);
	});

	it("stops, also in the middle of a sweep", async () => {
		const clock = manualClock();
		const sweep = Promise.withResolvers<number>();
		let tries = 0;
		const bus = busThat(() => {
			tries++;
			return sweep.promise;
		});
		const stop = keepRetention(bus, RULES, clock, silentLog);
		clock.advance(30_000);
		stop();
		sweep.resolve(0);
		await turn();
		clock.advance(10 * 60_000);
		expect(tries).toBe(1);
	});
});
