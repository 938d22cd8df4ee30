/** The reconnect state machine: whatever the network does, records are taken once, in order and whole. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LinkEffect, type LinkInput, type LinkState, newLink, nextTickAt, stepLink } from "../../src/web/link.ts";
import { atEffort } from "../effort.ts";

const limits = { retryFirstMs: 100, retryMaxMs: 1000, silenceMs: 5000 };
const run = (state: LinkState, input: LinkInput, now = 0) => stepLink(state, input, now, () => 1, limits);
const started = (after = 0) => run(run(newLink(after), { type: "start" }).state, { type: "opened" }).state;
const record = (id: number, final = false): LinkInput => ({ type: "record", id, final });

/** What a person would do to the network, against a log that is read through a link. */
type Fault = "deliver" | "repeat" | "lose" | "skip" | "refuse" | "silence" | "pause" | "resume" | "hurry";
const fault = fc.constantFrom<Fault>(
	"deliver",
	"deliver",
	"deliver",
	"repeat",
	"lose",
	"skip",
	"refuse",
	"silence",
	"pause",
	"resume",
	"hurry",
);

function simulate(total: number, faults: readonly Fault[]): number[] {
	const taken: number[] = [];
	let now = 0;
	let state = newLink(0);
	let next = 0;
	const perform = (input: LinkInput) => {
		const step = stepLink(state, input, now, () => 0.5, limits);
		state = step.state;
		for (const effect of step.effects) perfomEffect(effect, input);
		if (state.phase === "connecting") perform({ type: "opened" });
	};
	const perfomEffect = (effect: LinkEffect, input: LinkInput) => {
		if (effect.type === "connect") next = effect.after + 1;
		if (effect.type === "take" && input.type === "record") taken.push(input.id);
	};
	const offer = (id: number) => id <= total && perform(record(id, id === total));
	const act: Record<Fault, () => void> = {
		deliver: () => void (state.phase === "live" && offer(next++)),
		repeat: () => void (next > 1 && offer(next - 1)),
		lose: () => perform({ type: "lost" }),
		skip: () => void (state.phase === "live" && state.gapAt !== state.lastId + 1 && offer(next + 1)),
		refuse: () => perform({ type: "refused", status: 503 }),
		silence: () => {
			now += limits.silenceMs;
			perform({ type: "tick" });
		},
		pause: () => perform({ type: "pause" }),
		resume: () => perform({ type: "resume" }),
		hurry: () => perform({ type: "hurry" }),
	};
	perform({ type: "start" });
	for (const name of faults) act[name]();
	for (let guard = 0; state.phase !== "ended" && guard < total * 4 + 20; guard += 1) {
		now = Math.max(now, nextTickAt(state, limits) ?? now);
		if (state.phase === "paused") act.resume();
		else if (state.phase === "waiting") perform({ type: "tick" });
		else act.deliver();
	}
	return taken;
}

describe("the link to a stream", () => {
	it("I4: takes every record exactly once and in order, whatever happens to the connection", () => {
		fc.assert(
			fc.property(fc.integer({ min: 1, max: 30 }), fc.array(fault, { maxLength: 60 }), (total, faults) => {
				expect(simulate(total, faults)).toEqual(Array.from({ length: total }, (_, index) => index + 1));
			}),
			{ numRuns: atEffort(2000, 100) },
		);
	});

	it("connects strictly after the last record it took", () => {
		let { state } = run(started(7), record(8));
		state = run(state, { type: "lost" }).state;
		expect(state.phase).toBe("waiting");
		expect(run(state, { type: "tick" }, state.dueAt).effects).toEqual([{ type: "connect", after: 8 }]);
	});

	it("asks again for a missing record once, then goes on without it", () => {
		const gap = run(started(), record(3));
		expect(gap.effects).toEqual([{ type: "disconnect" }, { type: "connect", after: 0 }]);
		const second = run(run(gap.state, { type: "opened" }).state, record(3));
		expect(second.effects).toEqual([{ type: "take" }]);
		expect(second.state.lastId).toBe(3);
	});

	it("waits longer each time, up to the limit, and starts over after a sign of life", () => {
		let state = started();
		const waits: number[] = [];
		for (let index = 0; index < 6; index += 1) {
			state = run(state, { type: "lost" }).state;
			waits.push(state.dueAt);
			state = run(state, { type: "hurry" }).state;
		}
		expect(waits).toEqual([100, 200, 400, 800, 1000, 1000]);
		state = run(run(state, { type: "opened" }).state, { type: "heartbeat" }).state;
		expect(run(state, { type: "lost" }).state.dueAt).toBe(100);
	});

	it("gives a silent connection up, and not one that only sends heartbeats", () => {
		const heard = run(started(), { type: "heartbeat" }, 4000).state;
		expect(run(heard, { type: "tick" }, 6000).state.phase).toBe("live");
		expect(run(heard, { type: "tick" }, 9000).state.phase).toBe("waiting");
	});

	it.each([
		[401, "refused"],
		[404, "refused"],
		[410, "refused"],
		[429, "waiting"],
		[503, "waiting"],
	] as const)("a refusal with %i leads to %s", (status, phase) => {
		expect(run(run(newLink(0), { type: "start" }).state, { type: "refused", status }).state.phase).toBe(phase);
	});

	it("is over after the final record of a run, and after the server says there is no more", () => {
		expect(run(started(), record(1, true)).state.phase).toBe("ended");
		expect(run(started(), { type: "nothing-more" }).state.phase).toBe("ended");
		expect(run(run(started(), record(1, true)).state, { type: "lost" }).state.phase).toBe("ended");
	});
});
