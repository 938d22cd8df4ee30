/** The wall clock jumps while something is under way: nothing falls due that has not really passed, and an answer takes as long as it took. */

import { describe, expect, test } from "vitest";
import type { Clock } from "../../packages/protocol/src/clock.ts";
import { manualClock } from "../clock.ts";
import { never, request, rig, text, ticks, until } from "./rig.ts";

const HOUR_MS = 3_600_000;

/** Time passes by `advance` alone; what the clock says can be set. */
function settable() {
	const clock = manualClock(10 * HOUR_MS);
	let ahead = 0;
	const shown: Clock = {
		now: () => clock.now() + ahead,
		monotonic: () => clock.now(),
		after: (ms, callback) => clock.after(ms, callback),
	};
	return {
		clock: shown,
		advance: (ms: number) => clock.advance(ms),
		set(ms: number) {
			ahead += ms;
		},
	};
}

describe("a clock that jumps forward by hours", () => {
	test("I12: fires no watchdog, and those that are due fire on time", async () => {
		const time = settable();
		const { broker } = rig(
			async function* () {
				yield text("x");
				await never;
			},
			{ clock: time.clock, limits: { interTokenMs: 5000, abortGraceMs: 1000 } },
		);
		const { result } = broker.execute(request());
		await until(() => broker.live("run_1")?.text === "x");
		time.advance(2000);
		time.set(9 * HOUR_MS);
		time.advance(2900);
		await ticks(4);
		expect(broker.live("run_1")?.status).toBe("running");
		time.advance(100);
		expect(broker.live("run_1")?.status).toBe("stopping");
		time.advance(1000);
		const turn = await result;
		expect(turn.reason).toBe("timeout");
		expect(turn.endedAt - turn.startedAt).toBe(6000);
	});
});
