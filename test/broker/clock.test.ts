/**
 * The wall clock is set while something is under way: nothing waits for time that was taken away, nothing falls due that has not really
 * passed, and an answer takes as long as it took.
 */

import { describe, expect, test } from "vitest";
import type { Clock } from "../../packages/protocol/src/clock.ts";
import { manualClock } from "../clock.ts";
import { never, request, rig, tempFile, text, ticks, until, verified, yieldsThenWaits } from "./rig.ts";

const HOUR_MS = 3_600_000;

/** Timers run by `advance` alone; what the clock says can be set. `monotonic`: it also has a clock that is never set. */
function settable({ monotonic = false } = {}) {
	const clock = manualClock(10 * HOUR_MS);
	let ahead = 0;
	const shown: Clock = {
		now: () => clock.now() + ahead,
		after: (ms, callback) => clock.after(ms, callback),
		...(monotonic && { monotonic: () => clock.now() }),
	};
	return {
		clock: shown,
		advance: (ms: number) => clock.advance(ms),
		setBack(ms: number) {
			ahead -= ms;
		},
	};
}

describe("a clock that is set back by an hour", () => {
	test.each(["the stop", "the last token"])("I12: after %s the run settles all the same", async (moment) => {
		const time = settable();
		const limits = { abortGraceMs: 2000, interTokenMs: 5000 };
		const { broker, frames } = rig(yieldsThenWaits({ type: "text", delta: "x" }), { clock: time.clock, limits });
		const { result, abort } = broker.execute(request());
		await until(() => broker.live("run_1")?.text === "x");
		if (moment === "the stop") abort();
		time.setBack(HOUR_MS);
		// The time before the clock was set back may count twice, once.
		time.advance(2 * (limits.interTokenMs + limits.abortGraceMs));
		const turn = await result;
		expect(turn.reason).toBe(moment === "the stop" ? "aborted" : "timeout");
		expect(turn.endedAt).toBeGreaterThanOrEqual(turn.startedAt);
		const stamps = (await frames("run_1")).map((frame) => frame.ts);
		expect(stamps).toEqual(stamps.toSorted((a, b) => a - b));
	});

	test("the tokens and durations of an answer stay in order", async () => {
		const time = settable();
		const { broker, look, frames } = rig(
			async function* () {
				yield { type: "tool", callId: "c1", name: "look", status: "started" };
				time.setBack(HOUR_MS);
				yield { type: "tool", callId: "c1", name: "look", status: "completed" };
				time.advance(10);
				yield { type: "text", delta: "x" };
			},
			{ clock: time.clock },
		);
		await broker.execute(request()).result;
		const turn = look.turn("run_1")!;
		expect(turn.firstTokenMs).toBe(10);
		expect(turn.endedAt - turn.startedAt).toBe(10);
		expect(turn.toolCalls[0]!.endedAt).toBe(turn.toolCalls[0]!.startedAt);
		expect(verified(await frames("run_1"))).toBeUndefined();
	});

	test("a run that recovery ends does not end before its last token", async () => {
		const time = settable();
		const path = tempFile();
		const before = rig(
			async function* () {
				time.advance(100);
				yield { type: "text", delta: "x" };
				await never;
			},
			{ clock: time.clock, path, dies: true },
		);
		before.broker.execute(request());
		await until(async () => (await before.bus.describe("run_1"))?.head === 2);
		time.setBack(HOUR_MS);
		const after = rig(() => never as never, { clock: time.clock, path });
		expect(await after.broker.recover()).toMatchObject({ recovered: 1 });
		const turn = after.look.turn("run_1")!;
		expect(turn.endedAt - turn.startedAt).toBe(100);
	});
});

describe("a clock that jumps forward by hours", () => {
	test("I12: fires no watchdog, and those that are due fire on time", async () => {
		const time = settable({ monotonic: true });
		const { broker } = rig(yieldsThenWaits(text("x")), {
			clock: time.clock,
			limits: { interTokenMs: 5000, abortGraceMs: 1000 },
		});
		const { result } = broker.execute(request());
		await until(() => broker.live("run_1")?.text === "x");
		time.advance(2000);
		time.setBack(-9 * HOUR_MS);
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
