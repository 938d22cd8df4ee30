import fc from "fast-check";
import { expect, test } from "vitest";
import { type WatchdogState, watch } from "../../packages/daemon/src/broker/watchdog.ts";

const limits = { firstTokenMs: 60, interTokenMs: 120, totalMs: 1000, toolMs: 500, abortGraceMs: 20 };
const quiet: WatchdogState = { startedAt: 0, lastEventAt: undefined, oldestToolAt: undefined, stoppedAt: undefined };

test.each([
	["nothing came", {}, 59, { againMs: 1 }],
	["nothing came in time", {}, 60, { alarm: "first_token" }],
	["an event came", { lastEventAt: 30 }, 149, { againMs: 1 }],
	["then nothing", { lastEventAt: 30 }, 150, { alarm: "inter_token" }],
	["a tool may be silent", { lastEventAt: 30, oldestToolAt: 30 }, 500, { againMs: 50 }],
	["but not without a limit", { lastEventAt: 30, oldestToolAt: 30 }, 550, { alarm: "tool" }],
	["events to the end", { lastEventAt: 999 }, 1000, { alarm: "total" }],
	["a stop has its grace", { lastEventAt: 0, stoppedAt: 900 }, 919, { againMs: 1 }],
	["and no more", { lastEventAt: 0, stoppedAt: 900 }, 920, { alarm: "grace" }],
	["a person has all the time", { lastEventAt: 30, pauses: [{ from: 30 }] }, 1e9, { againMs: Infinity }],
	["unless the run is stopped", { pauses: [{ from: 30 }], stoppedAt: 900 }, 920, { alarm: "grace" }],
	["the wait does not count as silence", { lastEventAt: 30, pauses: [{ from: 40, to: 140 }] }, 249, { againMs: 1 }],
	["nor is it a part of the run", { lastEventAt: 1100, pauses: [{ from: 40, to: 140 }] }, 1100, { alarm: "total" }],
	["nor of another tool's time", { oldestToolAt: 30, pauses: [{ from: 40, to: 140 }] }, 649, { againMs: 1 }],
] as const)("%s", (_, times, now, verdict) => {
	expect(watch({ ...quiet, ...times }, limits, now)).toEqual(verdict);
});

test("without limits there is nothing to wait for", () => {
	const off = { firstTokenMs: Infinity, interTokenMs: Infinity, totalMs: Infinity, toolMs: Infinity, abortGraceMs: 20 };
	expect(watch(quiet, off, 1e15)).toEqual({ againMs: Infinity });
});

test("looking again after `againMs` always finds an alarm, and never earlier", () => {
	const time = fc.option(fc.nat(2000), { nil: undefined });
	fc.assert(
		fc.property(time, time, time, fc.nat(2000), (lastEventAt, oldestToolAt, stoppedAt, now) => {
			const watched: WatchdogState = { startedAt: 0, lastEventAt, oldestToolAt, stoppedAt };
			const verdict = watch(watched, limits, now);
			if (!("againMs" in verdict)) return;
			expect(watch(watched, limits, now + verdict.againMs)).toHaveProperty("alarm");
			expect(watch(watched, limits, now + verdict.againMs - 1)).toHaveProperty("againMs");
		}),
	);
});

test("A3: a run that waited for people has its alarms exactly that much later", () => {
	const time = fc.option(fc.nat(800), { nil: undefined });
	const gaps = fc.array(fc.tuple(fc.nat(200), fc.nat(300)), { maxLength: 4 });
	fc.assert(
		fc.property(time, time, gaps, (lastEventAt, oldestToolAt, waits) => {
			const from = Math.max(lastEventAt ?? 0, oldestToolAt ?? 0);
			const pauses: { from: number; to: number }[] = [];
			for (const [gap, ms] of waits) {
				const begin = (pauses.at(-1)?.to ?? from) + gap;
				pauses.push({ from: begin, to: begin + ms });
			}
			const stood = pauses.reduce((sum, { from: begin, to }) => sum + to - begin, 0);
			const times: WatchdogState = { ...quiet, lastEventAt, oldestToolAt };
			const at = (watched: WatchdogState, now: number) => {
				const verdict = watch(watched, limits, now);
				return "againMs" in verdict ? now + verdict.againMs : now;
			};
			const now = -1e6;
			expect(at({ ...times, pauses }, now)).toBe(at(times, now) + stood);
			expect(watch({ ...times, pauses: [...pauses, { from: 2e6 }] }, limits, 3e6)).toEqual({ againMs: Infinity });
		}),
	);
});
