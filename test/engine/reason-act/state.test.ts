/** The state of a run, without a loop: attempts, buffers, pairing, limits, custom state. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RUN_LIMITS } from "../../../packages/daemon/src/engine/reason-act/checkpoint.ts";
import { RunState } from "../../../packages/daemon/src/engine/reason-act/state.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";

const stateWith = (limits: Partial<typeof RUN_LIMITS> = {}) => new RunState({ ...RUN_LIMITS, ...limits });

function active(limits: Partial<typeof RUN_LIMITS> = {}): RunState {
	const state = stateWith(limits);
	state.activate("writer", "plan");
	return state;
}

describe("attempts", () => {
	test("R2-4, R2-8, R2-9, R2-11, R2-15, R2-101: a new run has said nothing, called nothing and ended nothing", () => {
		const state = active();
		expect(state).toMatchObject({ content: "", reasoning: "", terminal: undefined, results: [], hasSpoken: false });
		expect(state.used).toEqual({ modelCalls: 0, routes: 0, toolCalls: 0, tokens: 0, costUsd: 0 });
	});

	test("R2-16, R2-61, R2-81, R2-102: a retry forgets words and termination, and keeps calls, counters and custom state", () => {
		const state = active();
		state.say("first");
		state.think("hm");
		const call = state.announce("a", "complete", {});
		state.terminate(call);
		state.used.modelCalls++;
		state.setState("k", { n: 1 });
		expect(state.retry()).toEqual({ agent: "writer", phase: "plan", attempt: 2 });
		// A19: what was shown in an earlier attempt still counts as said.
		expect(state).toMatchObject({ content: "", reasoning: "", terminal: undefined, hasSpoken: true });
		expect(state.openCalls()).toEqual([call]);
		expect(state.used).toMatchObject({ modelCalls: 1, toolCalls: 1 });
		expect(state.getState("k")).toEqual({ n: 1 });
	});

	test("R2-14: a reset forgets everything", () => {
		const state = active();
		state.announce("a", "look", {});
		state.setState("k", 1);
		state.used.tokens += 5;
		state.reset();
		expect(state.openCalls()).toEqual([]);
		expect(state.hasState("k")).toBe(false);
		expect(state.used.tokens).toBe(0);
		expect(() => state.activation).toThrow("no agent is active");
	});

	test("R2-119: white space alone is not an answer", () => {
		const state = active();
		state.say(" \n");
		expect(state.hasSpoken).toBe(false);
		state.say("x");
		expect(state.hasSpoken).toBe(true);
		state.activate("writer", "plan");
		expect(state.hasSpoken).toBe(false);
	});
});

describe("buffers", () => {
	test("I11: words and reasoning are kept up to their limit, the first of them", () => {
		const state = active({ bufferCharsMax: 4 });
		for (const text of ["ab", "cde", "f"]) state.say(text);
		state.think("123456");
		expect(state.content).toBe("abcd");
		expect(state.reasoning).toBe("1234");
	});

	test("R2-12, R2-80, R2-116, R2-128: a reasoning block is new to the log once; the oldest are forgotten", () => {
		const state = active({ thinkingBlocksMax: 2 });
		expect(["a", "a", "b", "a", "c", "a"].map((block) => state.isNewThinking(block))).toEqual([
			...[true, false, true, false],
			...[true, true],
		]);
	});
});

describe("tool calls", () => {
	test("R2-17, R2-117: a repeated or empty id of the model is replaced by a unique one", () => {
		const state = active();
		const ids = [
			state.announce("a", "look", {}),
			state.announce("a", "look", {}),
			state.announce("", "look", {}),
			state.announce("", "look", {}),
		].map(({ callId }) => callId);
		expect(ids).toEqual(["a", "a_2", "look", "look_2"]);
	});

	test("I11: ids and names that a model makes up have a limit, and stay apart", () => {
		const state = active();
		const [first, second] = [0, 1].map(() => state.announce("i".repeat(9999), "n".repeat(9999), {}));
		expect([first!.name.length, first!.callId.length]).toEqual([200, 200]);
		expect(second!.callId).not.toBe(first!.callId);
	});

	test("R2-117: a second start is ignored", () => {
		const state = active();
		const call = state.announce("a", "look", {});
		expect([state.start(call), state.start(call)]).toEqual([true, false]);
		expect(state.startReported("a", "look", {})).toBeUndefined();
	});

	test("R2-11, R2-21, R2-106, R2-118: an end without a start says so, every time", () => {
		const state = active();
		for (const id of ["a", "b"]) {
			expect(state.endReported(id, "look", "completed", "r")).toMatchObject({ missingStart: true });
		}
		state.startReported("c", "look", {});
		expect(state.endReported("c", "look", "failed", "r")).toMatchObject({ missingStart: false });
	});

	test("a second end is ignored", () => {
		const state = active();
		const call = state.announce("a", "look", {});
		expect(state.end(call, "completed", "one")).toMatchObject({ missingStart: true });
		expect(state.end(call, "failed", "two")).toBeUndefined();
		expect(state.results).toMatchObject([{ callId: "a", status: "completed", result: "one" }]);
	});

	test("R2-7: the first terminal call counts", () => {
		const state = active();
		state.terminate({ callId: "1", name: "complete", args: {} });
		state.terminate({ callId: "2", name: "complete", args: {} });
		expect(state.terminal?.callId).toBe("1");
	});

	test("I12: whatever is reported in whatever order, ids are unique and closing what is open leaves nothing open", () => {
		const id = fc.constantFrom("", "a", "b");
		const step = fc.record({ does: fc.constantFrom("announce", "start", "end"), id, name: fc.constantFrom("x", "y") });
		fc.assert(
			fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
				const state = active();
				const ended: string[] = [];
				for (const { does, id, name } of steps) {
					if (does === "announce") state.announce(id, name, {});
					else if (does === "start") state.startReported(id, name, {});
					else ended.push(state.endReported(id, name, "completed", "").call.callId);
				}
				for (const call of state.openCalls()) ended.push(state.end(call, "failed", "")!.call.callId);
				expect(new Set(ended).size).toBe(ended.length);
				expect(state.openCalls()).toEqual([]);
				expect(state.results.map(({ callId }) => callId).toSorted()).toEqual(ended.toSorted());
			}),
			{ numRuns: atEffort(1000, 100) },
		);
	});
});

describe("limits", () => {
	test.each<[string, Partial<typeof RUN_LIMITS>, (state: RunState) => void]>([
		["modelCallsMax", { modelCallsMax: 1 }, (state) => state.used.modelCalls++],
		["routesMax", { routesMax: 0 }, (state) => state.used.routes++],
		["toolCallsMax", { toolCallsMax: 0 }, (state) => state.announce("a", "look", {})],
		["tokensMax", { tokensMax: 10 }, (state) => (state.used.tokens += 10)],
		["costUsdMax", { costUsdMax: 0.5 }, (state) => (state.used.costUsd += 0.5)],
	])("A18: %s ends the run in words that name it", (name, limits, use) => {
		const state = active(limits);
		expect(state.exhausted()).toBeUndefined();
		use(state);
		expect(state.exhausted()).toContain(name);
	});

	test("A18: the default limits", () => {
		expect(RUN_LIMITS).toMatchObject({ modelCallsMax: 64, routesMax: 16 });
	});
});

describe("custom state", () => {
	test("R2-5, R2-13, R2-132: is JSON, copied in and out", () => {
		const state = active();
		const value = { list: [1] };
		state.setState("k", value);
		value.list.push(2);
		(state.getState("k") as typeof value).list.push(3);
		expect(state.getAllState()).toEqual({ k: { list: [1] } });
		expect([state.hasState("k"), state.hasState("x")]).toEqual([true, false]);
		expect(() => state.setState("f", () => 1)).toThrow("is not JSON");
	});

	test("I11: has a limit, and what does not fit changes nothing", () => {
		const state = active({ customCharsMax: 20 });
		state.setState("k", 1);
		expect(() => state.setState("k", "x".repeat(20))).toThrow("20 characters");
		expect(state.getState("k")).toBe(1);
	});

	test("R2-124, A5: a snapshot is JSON and restores calls, counters and custom state", () => {
		const state = active();
		state.retry();
		state.start(state.announce("a", "look", { x: 1 }));
		state.setState("k", [1]);
		state.used.tokens += 3;
		state.used.costUsd += 0.1;
		const stored = JSON.parse(JSON.stringify(state.snapshot()));
		const lane = JSON.parse(JSON.stringify(state.laneSnapshot()));
		const restored = new RunState(RUN_LIMITS, stored).lane(lane);
		expect(restored.snapshot()).toEqual(state.snapshot());
		expect(restored.activation).toEqual({ agent: "writer", phase: "plan", attempt: 2 });
		expect(restored.endReported("a", "look", "completed", "").missingStart).toBe(false);
		expect(restored.announce("a", "look", {}).callId).toBe("a_2");
	});
});

describe("A7: two lanes of a run", () => {
	test("have words and an end of their own, and share calls, counters and custom state", () => {
		const run = stateWith();
		const [a, b] = ["a", "b"].map((agent) => {
			const lane = run.lane();
			lane.activate(agent, "plan");
			return lane;
		});
		a!.say("words");
		a!.terminate({ callId: "1", name: "complete", args: {} });
		expect(b).toMatchObject({ content: "", hasSpoken: false, terminal: undefined });
		a!.setState("k", 1);
		b!.used.modelCalls++;
		expect([b!.getState("k"), a!.used.modelCalls]).toEqual([1, 1]);
		expect([a!, b!].map((lane) => lane.announce("x", "look", {}).callId)).toEqual(["x", "x_2"]);
		expect(run.openCalls().map(({ agent }) => agent)).toEqual(["a", "b"]);
	});

	test("R2-117: tell apart what two providers report under the same id", () => {
		const run = stateWith();
		const [a, b] = [run.lane(), run.lane()];
		a.activate("a", "plan");
		b.activate("b", "plan");
		const started = [a, b].map((lane) => lane.startReported("x", "search", {})!.callId);
		expect(started).toEqual(["x", "x_2"]);
		expect(a.endReported("x", "search", "completed", "").call.callId).toBe("x");
		expect(b.endReported("x", "search", "completed", "").call.callId).toBe("x_2");
	});
});
