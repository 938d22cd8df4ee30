import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	EMPTY_QUEUE,
	NOT_READY,
	type QueueEntry,
	type QueueState,
	refusalOf,
	stepQueue,
} from "../../packages/daemon/src/services/kit/fair-queue.ts";
import { atEffort } from "../effort.ts";

const LIMITS = { runningMax: 3, runningPerAppMax: 2, waitingMax: 4, waitingPerAppMax: 3 };

/** Plays inputs; `leave` and `ready` name the n-th that runs or waits. */
const inputs = fc.array(
	fc.oneof(
		{
			weight: 3,
			arbitrary: fc.record({
				type: fc.constant("wait" as const),
				app: fc.nat(3),
				pauseMs: fc.constantFrom(0, 0, 5, NOT_READY),
			}),
		},
		{ weight: 1, arbitrary: fc.record({ type: fc.constant("run" as const), app: fc.nat(3) }) },
		{ weight: 3, arbitrary: fc.record({ type: fc.constantFrom("leave" as const, "ready" as const), nth: fc.nat(10) }) },
		{ weight: 1, arbitrary: fc.record({ type: fc.constant("pass" as const), ms: fc.nat(6) }) },
	),
	{ maxLength: 60 },
);

const runningOf = ({ running }: QueueState, appId: string) =>
	[...running.values()].filter((app) => app === appId).length;

/** Entries that the limits let start now. */
const startable = (state: QueueState, now: number) =>
	state.running.size >= LIMITS.runningMax
		? []
		: state.waiting.filter(({ readyAt, appId }) => readyAt <= now && runningOf(state, appId) < LIMITS.runningPerAppMax);

/** Starts one by one what the step started together, and checks that each was the one whose turn it was. */
function checkTurns(before: QueueState, starts: readonly string[], now: number, served: Map<string, number>): void {
	let state = before;
	for (const id of starts) {
		const choice = startable(state, now);
		const started = choice.find((entry) => entry.id === id)!;
		expect(started, "it was ready, and within the limits").toBeDefined();
		const turnOf = ({ appId }: QueueEntry) => served.get(appId) ?? 0;
		expect(turnOf(started), "no application waits longer for its turn").toBe(Math.min(...choice.map(turnOf)));
		expect(
			choice.find(({ appId }) => appId === started.appId),
			"first come, first served",
		).toBe(started);
		served.set(started.appId, Math.max(0, ...served.values()) + 1);
		const waiting = state.waiting.filter((entry) => entry !== started);
		state = { ...state, waiting, running: new Map(state.running).set(id, started.appId) };
	}
}

describe("the fair queue", () => {
	it("I11: keeps its limits, gives applications turns, starts each entry once, and leaves no usable slot empty", () => {
		fc.assert(
			fc.property(inputs, (plays) => {
				let state = EMPTY_QUEUE;
				let [now, made] = [0, 0];
				const started: string[] = [];
				const served = new Map<string, number>();
				const forced = new Set<string>();
				const play = (input: Parameters<typeof stepQueue>[1]) => {
					// Limits of zero show what the input does by itself, without any start.
					const taken = stepQueue(state, input, now, { runningMax: 0, runningPerAppMax: 0 }).state;
					if (input.type === "run") served.set(input.appId, Math.max(0, ...served.values()) + 1);
					const present = new Set([...taken.running.values(), ...taken.waiting.map(({ appId }) => appId)]);
					for (const app of served.keys()) if (!present.has(app)) served.delete(app);
					const step = stepQueue(state, input, now, LIMITS);
					checkTurns(taken, step.starts, now, served);
					state = step.state;
					started.push(...step.starts);
					expect(startable(state, now)).toEqual([]);
					const pauses = state.waiting.map(({ readyAt }) => readyAt).filter((at) => at > now && at !== NOT_READY);
					expect(step.tickAt).toBe(pauses.length > 0 ? Math.min(...pauses) : undefined);
				};
				for (const step of plays) {
					const all = [...state.running.keys(), ...state.waiting.map(({ id }) => id)];
					if (step.type === "wait") {
						const appId = `app${step.app}`;
						if (refusalOf(state, appId, LIMITS) === undefined)
							play({ type: "wait", id: `${made++}`, appId, readyAt: now + step.pauseMs });
					} else if (step.type === "run") {
						forced.add(`${made}`);
						play({ type: "run", id: `${made++}`, appId: `app${step.app}` });
					} else if (step.type === "pass") {
						now += step.ms;
						play({ type: "tick" });
					} else if (step.type === "leave") play({ type: "leave", id: all[step.nth % all.length] ?? "none" });
					else {
						const entry = state.waiting[step.nth % state.waiting.length];
						if (entry) play({ type: "wait", ...entry, readyAt: now });
					}
					const ran = [...state.running.keys()].filter((id) => !forced.has(id)).length;
					expect(ran).toBeLessThanOrEqual(LIMITS.runningMax);
					expect(state.waiting.length).toBeLessThanOrEqual(LIMITS.waitingMax + LIMITS.runningMax);
				}
				// No starvation: when nothing more comes and what runs ends, everything that is ready has run.
				now += 5;
				play({ type: "tick" });
				while (state.running.size > 0) play({ type: "leave", id: [...state.running.keys()][0]! });
				expect(state.waiting.every(({ readyAt }) => readyAt === NOT_READY)).toBe(true);
				expect(new Set(started).size).toBe(started.length);
			}),
			{ numRuns: atEffort(200) },
		);
	});
});
