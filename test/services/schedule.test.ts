import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	EMPTY_SCHEDULE,
	type JobSchedule,
	positionsOf,
	stepSchedule,
} from "../../packages/daemon/src/services/jobs/schedule.ts";
import { atEffort } from "../effort.ts";

const LIMITS = { runningMax: 3, runningPerAppMax: 2 };

/** Plays inputs; `leave` names the n-th that runs or waits. */
const inputs = fc.array(
	fc.oneof(
		{
			weight: 3,
			arbitrary: fc.record({ type: fc.constant("wait" as const), app: fc.nat(3), pauseMs: fc.constantFrom(0, 0, 5) }),
		},
		{ weight: 2, arbitrary: fc.record({ type: fc.constant("leave" as const), nth: fc.nat(10) }) },
		{ weight: 1, arbitrary: fc.record({ type: fc.constant("pass" as const), ms: fc.nat(6) }) },
	),
	{ maxLength: 60 },
);

const runningOf = ({ running }: JobSchedule, appId: string) =>
	[...running.values()].filter((app) => app === appId).length;

describe("the schedule", () => {
	it("I11: keeps its limits, starts each job once, in order, and leaves no slot empty that a ready job could have", () => {
		fc.assert(
			fc.property(inputs, (steps) => {
				let schedule = EMPTY_SCHEDULE;
				let [now, made] = [0, 0];
				const arrived: { id: string; appId: string; at: number }[] = [];
				const started: string[] = [];
				for (const step of steps) {
					let result = stepSchedule(schedule, { type: "tick" }, now, LIMITS);
					if (step.type === "wait") {
						const one = { id: `job_${made++}`, appId: `app${step.app}`, readyAt: now + step.pauseMs };
						arrived.push({ ...one, at: one.readyAt });
						result = stepSchedule(schedule, { type: "wait", ...one }, now, LIMITS);
					} else if (step.type === "leave") {
						const all = [...schedule.running.keys(), ...schedule.waiting.map(({ id }) => id)];
						const id = all[step.nth % Math.max(1, all.length)] ?? "none";
						result = stepSchedule(schedule, { type: "leave", id }, now, LIMITS);
						expect(result.schedule.running.has(id)).toBe(false);
					} else {
						now += step.ms;
						result = stepSchedule(schedule, { type: "tick" }, now, LIMITS);
					}
					schedule = result.schedule;
					started.push(...result.starts);
					expect(schedule.running.size).toBeLessThanOrEqual(LIMITS.runningMax);
					for (const app of schedule.running.values())
						expect(runningOf(schedule, app)).toBeLessThanOrEqual(LIMITS.runningPerAppMax);
					const ready = schedule.waiting.filter(
						({ readyAt, appId }) => readyAt <= now && runningOf(schedule, appId) < LIMITS.runningPerAppMax,
					);
					if (schedule.running.size < LIMITS.runningMax) expect(ready).toEqual([]);
					const pauses = schedule.waiting.filter(({ readyAt }) => readyAt > now).map(({ readyAt }) => readyAt);
					expect(result.tickAt).toBe(pauses.length > 0 ? Math.min(...pauses) : undefined);
				}
				expect(new Set(started).size).toBe(started.length);
				// Within an application, those without a pause keep their order.
				for (const app of new Set(arrived.map(({ appId }) => appId))) {
					const plain = arrived.filter(({ appId }) => appId === app).map(({ id }) => id);
					const paused = new Set(steps.flatMap((step) => (step.type === "wait" && step.pauseMs > 0 ? [step] : [])));
					if (paused.size === 0)
						expect(started.filter((id) => plain.includes(id))).toEqual(plain.filter((id) => started.includes(id)));
				}
			}),
			{ numRuns: atEffort(200) },
		);
	});

	it("applications take turns: a flood of one does not keep another waiting, and positions say so", () => {
		let schedule = EMPTY_SCHEDULE;
		const limits = { runningMax: 1, runningPerAppMax: 1 };
		const wait = (id: string, appId: string) =>
			stepSchedule(schedule, { type: "wait", id, appId, readyAt: 0 }, 0, limits);
		for (const n of [0, 1, 2, 3]) schedule = wait(`flood${n}`, "flood").schedule;
		schedule = wait("small0", "small").schedule;
		schedule = wait("small1", "small").schedule;
		const expected = ["small0", "flood1", "small1", "flood2", "flood3"];
		const positions = positionsOf(schedule);
		expect(expected.map((id) => positions.get(id))).toEqual([0, 1, 2, 3, 4]);
		const order: string[] = [];
		while (schedule.running.size > 0) {
			const result = stepSchedule(schedule, { type: "leave", id: [...schedule.running.keys()][0]! }, 0, limits);
			schedule = result.schedule;
			order.push(...result.starts);
		}
		expect(order).toEqual(expected);
	});
});
