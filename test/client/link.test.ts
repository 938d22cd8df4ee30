/** The reconnect state machine: whatever the network does, records are taken once, in order and whole. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	type LinkEffect,
	type LinkInput,
	type LinkState,
	newLink,
	nextTickAt,
	stepLink,
} from "../../packages/client/src/link.ts";
import { type ErrorCode, NexusError } from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";

const limits = { retryFirstMs: 100, retryMaxMs: 1000, silenceMs: 5000, steadyMs: 3000, giveUpMs: 60_000 };
const refusal = (code: ErrorCode): LinkInput => ({ type: "refused", error: new NexusError(code, "no") });
const lost: LinkInput = { type: "lost", error: new NexusError("unavailable", "cut") };
const run = (state: LinkState, input: LinkInput, now = 0) => stepLink(state, input, now, () => 1, limits);
const started = (after = 0) => run(run(newLink(after), { type: "start" }).state, { type: "opened" }).state;
const record = (id: number, final = false): LinkInput => ({ type: "record", id, final });

/** Network faults against a log that is read through a link. */
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
		for (const effect of step.effects) performEffect(effect, input);
		if (state.phase === "connecting") perform({ type: "opened" });
	};
	const performEffect = (effect: LinkEffect, input: LinkInput) => {
		if (effect.type === "connect") next = (effect.after ?? 0) + 1;
		if (effect.type === "take" && input.type === "record") taken.push(input.id);
	};
	const offer = (id: number) => id <= total && perform(record(id, id === total));
	const act: Record<Fault, () => void> = {
		deliver: () => void (state.phase === "live" && offer(next++)),
		repeat: () => void (next > 1 && offer(next - 1)),
		lose: () => perform(lost),
		skip: () => void (state.phase === "live" && state.gapAt !== (state.lastId ?? 0) + 1 && offer(next + 1)),
		refuse: () => perform(refusal("unavailable")),
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
		state = run(state, lost).state;
		expect(state.phase).toBe("waiting");
		expect(run(state, { type: "tick" }, state.dueAt).effects).toEqual([{ type: "connect", after: 8 }]);
	});

	it("requests a missing record once more, then continues without it", () => {
		const gap = run(started(), record(3));
		expect(gap.effects).toEqual([{ type: "disconnect" }, { type: "connect", after: 0 }]);
		const second = run(run(gap.state, { type: "opened" }).state, record(3));
		expect(second.effects).toEqual([{ type: "take" }]);
		expect(second.state).toMatchObject({ lastId: 3, faults: 1 });
		expect(run(second.state, record(3)).state).toMatchObject({ lastId: 3, faults: 2 });
	});

	it("waits longer each time, up to the limit, and starts over after a sign of life", () => {
		let state = started();
		const waits: number[] = [];
		for (let index = 0; index < 6; index += 1) {
			state = run(state, lost).state;
			waits.push(state.dueAt);
			state = run(state, { type: "hurry" }).state;
		}
		expect(waits).toEqual([100, 200, 400, 800, 1000, 1000]);
		state = run(run(state, { type: "opened" }).state, { type: "heartbeat" }).state;
		expect(run(state, lost).state.dueAt).toBe(100);
	});

	it("gives a silent connection up, and not one that only sends heartbeats", () => {
		const heard = run(started(), { type: "heartbeat" }, 4000).state;
		expect(run(heard, { type: "tick" }, 6000).state.phase).toBe("live");
		expect(run(heard, { type: "tick" }, 9000).state.phase).toBe("waiting");
	});

	it("a partial record ends the silence but does not reset the retry count", () => {
		const tried = run(run(started(), lost).state, { type: "hurry" }).state;
		const heard = run(run(tried, { type: "opened" }).state, { type: "heard" }, 4000).state;
		expect(heard).toMatchObject({ phase: "live", receivedAt: 4000, attempt: 1 });
		expect(run(heard, { type: "tick" }, 6000).state.phase).toBe("live");
		expect(run(heard, { type: "tick" }, 9000).state.phase).toBe("waiting");
	});

	it.each([
		["unauthenticated", "refused"],
		["not_found", "refused"],
		["expired", "refused"],
		["data_loss", "refused"],
		["busy", "waiting"],
		["unavailable", "waiting"],
	] as const)("a refusal with %s leads to %s", (code, phase) => {
		const { state } = run(run(newLink(0), { type: "start" }).state, refusal(code));
		expect([state.phase, state.error?.code]).toEqual([phase, code]);
	});

	it("asks a server with an internal fault a few times more, however often it was away before, and then throws", () => {
		const tried = (state: LinkState, input: LinkInput) => run(run(state, input).state, { type: "hurry" }).state;
		let state = run(newLink(0), { type: "start" }).state;
		for (let index = 0; index < 20; index += 1) state = tried(state, refusal("unavailable"));
		for (let index = 0; index < 5; index += 1) state = tried(state, refusal("internal"));
		expect(state.phase).toBe("connecting");
		expect(run(state, refusal("internal")).state).toMatchObject({ phase: "refused", error: { code: "internal" } });
		const heard = run(run(state, { type: "opened" }).state, record(1)).state;
		expect(run(heard, lost).state.phase).toBe("waiting");
		expect(run(run(run(heard, lost).state, { type: "hurry" }).state, refusal("internal")).state.phase).toBe("waiting");
	});

	it("gives up when no connection was good for too long, however long each try took", () => {
		let state = run(newLink(0), { type: "start" }).state;
		for (const now of [0, 30_000, 59_999]) {
			state = run(state, lost, now).state;
			expect(state.phase).toBe("waiting");
			state = run(state, { type: "hurry" }, now).state;
		}
		expect(run(state, lost, 60_000).state.phase).toBe("lost");
		const opened = run(state, { type: "opened" }, 60_000).state;
		expect(run(opened, lost, 60_001).state.phase).toBe("lost");
		// A connection that stayed open was good, even without records.
		expect(run(opened, lost, 63_000).state).toMatchObject({ phase: "waiting", attempt: 1, lostAt: 63_000 });
	});

	it("without an offset, takes the first record that arrives and continues from there", () => {
		const first = run(run(newLink(undefined), { type: "start" }).state, record(17));
		expect([first.effects, first.state.lastId]).toEqual([[{ type: "take" }], 17]);
		expect(run(first.state, record(17)).effects).toEqual([]);
		expect(run(first.state, record(19)).effects).toContainEqual({ type: "connect", after: 17 });
	});

	it("is over after the final record of a run, and after the server says there is no more", () => {
		expect(run(started(), record(1, true)).state.phase).toBe("ended");
		expect(run(started(), { type: "nothing-more" }).state.phase).toBe("ended");
		expect(run(run(started(), record(1, true)).state, lost).state.phase).toBe("ended");
	});
});
