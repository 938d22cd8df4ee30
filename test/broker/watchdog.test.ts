import fc from "fast-check";
import { expect, test } from "vitest";
import { type Watched, watch } from "../../src/broker/watchdog.ts";

const limits = { firstTokenMs: 60, interTokenMs: 120, totalMs: 1000, toolMs: 500, abortGraceMs: 20 };
const quiet: Watched = { startedAt: 0, lastEventAt: undefined, oldestToolAt: undefined, stoppedAt: undefined };

test.each([
	["nothing came", {}, 59, { againMs: 1 }],
	["nothing came in time", {}, 60, { alarm: "first_token" }],
	["an event came", { lastEventAt: 30 }, 149, { againMs: 1 }],
	["then nothing", { lastEventAt: 30 }, 150, { alarm: "inter_token" }],
	["a tool may be silent", { lastEventAt: 30, oldestToolAt: 30 }, 500, { againMs: 50 }],
	["but not for ever", { lastEventAt: 30, oldestToolAt: 30 }, 550, { alarm: "tool" }],
	["events to the end", { lastEventAt: 999 }, 1000, { alarm: "total" }],
	["a stop has its grace", { lastEventAt: 0, stoppedAt: 900 }, 919, { againMs: 1 }],
	["and no more", { lastEventAt: 0, stoppedAt: 900 }, 920, { alarm: "grace" }],
] as const)("%s", (_, times, now, verdict) => {
	expect(watch({ ...quiet, ...times }, limits, now)).toEqual(verdict);
});

test("without limits there is nothing to wait for", () => {
	const off = { firstTokenMs: Infinity, interTokenMs: Infinity, totalMs: Infinity, toolMs: Infinity, abortGraceMs: 20 };
	expect(watch(quiet, off, 1e15)).toEqual({ againMs: Infinity });
});

test("looking again exactly when told always finds an alarm, and never one before", () => {
	const time = fc.option(fc.nat(2000), { nil: undefined });
	fc.assert(
		fc.property(time, time, time, fc.nat(2000), (lastEventAt, oldestToolAt, stoppedAt, now) => {
			const watched: Watched = { startedAt: 0, lastEventAt, oldestToolAt, stoppedAt };
			const verdict = watch(watched, limits, now);
			if (!("againMs" in verdict)) return;
			expect(watch(watched, limits, now + verdict.againMs)).toHaveProperty("alarm");
			expect(watch(watched, limits, now + verdict.againMs - 1)).toHaveProperty("againMs");
		}),
	);
});
