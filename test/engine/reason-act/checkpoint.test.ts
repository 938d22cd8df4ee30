/** Going on from a checkpoint: completed tools are not run again, and the model knows what became of the others. */

import { describe, expect, test } from "vitest";
import { digestOf } from "../../../packages/daemon/src/engine/engine.ts";
import { type Checkpoint, GO_ON, missingResults } from "../../../packages/daemon/src/engine/reason-act/checkpoint.ts";
import type { ReasonActConfig } from "../../../packages/daemon/src/engine/reason-act/entry.ts";
import { reasonAct } from "../../../packages/daemon/src/engine/reason-act/loop.ts";
import type { LlmEvent } from "../../../packages/daemon/src/engine/reason-act/model/model.ts";
import { scriptedModel } from "../../../packages/daemon/src/engine/reason-act/model/scripted.ts";
import { reasonActEngine } from "../../../packages/daemon/src/engine/reason-act/reason-act.ts";
import { type Tool, textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import type { ApprovalOutcome } from "../../../packages/protocol/src/engine.ts";
import { collect, requestOf, textOf } from "../demo-play.ts";
import {
	type Answers,
	answer,
	asks,
	completes,
	messageOf,
	modelOf,
	routes,
	setupOf,
	teamOf,
	text,
	toolOf,
} from "./kit.ts";

const request = requestOf("hello");
const context = { signal: new AbortController().signal };

/** Keeps checkpoints instead of yielding them. */
function keeping(kept: (one: Checkpoint) => void = () => {}) {
	const checkpoints: Checkpoint[] = [];
	const checkpoint = (one: Checkpoint) => {
		checkpoints.push(JSON.parse(JSON.stringify(one)));
		kept(one);
		return undefined;
	};
	return { checkpoints, checkpoint };
}

/** Plays a run whole, and keeps every checkpoint as a store would. */
async function recorded(answers: readonly (readonly LlmEvent[])[], tools: Tool[], config = {}) {
	const { model } = modelOf(answers);
	const { checkpoints, checkpoint } = keeping();
	const setup = await setupOf(config, model, tools);
	await collect(reasonAct({ ...setup, checkpoint }, request, context));
	return checkpoints;
}

async function resumed(from: Checkpoint, answers: readonly (readonly LlmEvent[])[], tools: Tool[], config = {}) {
	const { model, calls } = modelOf(answers);
	const events = await collect(reasonAct(await setupOf(config, model, tools), request, context, from));
	return { events, calls };
}

/** Tools that note when they act. */
function noting() {
	const acted: string[] = [];
	const tools = ["a", "b", "c"].map((name) =>
		toolOf(name, {
			async execute(_args, { state }) {
				acted.push(name);
				state.setState("last", name);
				return textResult(`${name} done`);
			},
		}),
	);
	return { acted, tools };
}

const answers = [answer(text("One. "), asks("a")), answer(asks("b"), asks("c")), answer(text("Done."))];

describe("A5: a checkpoint", () => {
	test("is made with every start and every end of a tool", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		const statuses = checkpoints.map(({ state }) => state.calls.map(({ status }) => status).join(" "));
		expect(statuses).toEqual([
			...["started", "completed"],
			...["completed started announced", "completed started started"],
			...["completed completed started", "completed completed completed"],
		]);
		expect(checkpoints.at(-1)!.state.custom).toEqual({ last: "c" });
	});

	test("continues with the same context, and runs no completed tool again", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		const { acted, tools } = noting();
		const { events, calls } = await resumed(checkpoints.at(-1)!, answers.slice(2), tools);
		expect(acted).toEqual([]);
		expect(textOf(events)).toBe("Done.");
		expect(events.filter(({ type }) => type === "tool")).toEqual([]);
		expect(calls[0]!.index).toBe(2);
		const results = calls[0]!.messages.filter((message) => message.role === "toolResult");
		expect(results.map(({ content }) => content)).toEqual(["a", "b", "c"].map((name) => [text(`${name} done`)]));
	});

	test("A4: a tool that was under way is of unknown outcome, one that had not begun never ran", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		const cut = checkpoints.find(
			({ state }) => state.calls.map(({ status }) => status).join() === "completed,started,announced",
		)!;
		const { acted, tools } = noting();
		const { calls } = await resumed(cut, answers.slice(2), tools);
		expect(acted).toEqual([]);
		const [, b, c] = calls[0]!.messages.filter((message) => message.role === "toolResult");
		expect(b).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^outcome unknown/) }] });
		expect(c).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^never ran/) }] });
	});

	test("whose terminal tool had succeeded is over without another model call", async () => {
		const config = { phase: "plan" };
		const complete = [answer(asks("complete", { response: "Here.", summary: "s" }))];
		const checkpoints = await recorded(complete, [], config);
		const { events, calls } = await resumed(checkpoints.at(-1)!, complete, [], config);
		expect(calls).toEqual([]);
		expect(textOf(events)).toBe("Here.");
	});

	test("keeps counting: attempts and limits of the run that was cut off still hold", async () => {
		const config = { modelCallsMax: 2 };
		const checkpoints = await recorded(answers.slice(0, 2).concat([answer()]), noting().tools);
		const going = resumed(checkpoints.at(-1)!, answers.slice(2), noting().tools, config);
		await expect(going).rejects.toMatchObject({ message: expect.stringContaining("modelCallsMax") });
	});
});

/** Continues as the engine does, with the Broker's continuation. */
async function continued(
	from: Checkpoint | null,
	fields: { shown?: string; answer?: ApprovalOutcome & { callId: string } },
	answers: readonly (readonly LlmEvent[])[],
	tools: Tool[],
) {
	const { model, calls } = modelOf(answers);
	const engine = reasonActEngine(await setupOf({}, model, tools));
	const continues = { runId: "run_1", checkpoint: from, shown: "", ...fields };
	const events = await collect(engine.run({ ...request, continues }, context));
	return { events, calls };
}

describe("A1: words that were shown after the checkpoint", () => {
	test("are the model's own, interrupted: it is asked to continue without repeating them", async () => {
		const checkpoints = await recorded(answers, noting().tools);
		for (const from of [checkpoints.at(-1)!, null]) {
			const { calls, events } = await continued(from, { shown: "Do" }, [answer(text("ne."))], noting().tools);
			const [cut, told] = calls[0]!.messages.slice(-2);
			expect(cut).toMatchObject({ role: "assistant", content: [text("Do")] });
			expect(told).toMatchObject({ role: "user", content: GO_ON });
			expect(textOf(events)).toBe("ne.");
		}
	});

	test("the scripted model continues behind them", async () => {
		const script = { steps: [{ text: "One two three four.", tokensPerSecond: 0 }] };
		const engine = reasonActEngine(await setupOf({}, scriptedModel(script, systemClock), []));
		const continues = { runId: "run_1", checkpoint: null, shown: "One two th" };
		const events = await collect(engine.run({ ...request, continues }, context));
		expect(textOf(events)).toBe("ree four.");
	});
});

describe("A2: a call that waited for a person when the run was cut off", () => {
	/** `b` waits for approval; `a` has completed. */
	async function waiting() {
		const { tools } = noting();
		const asking = tools.map((tool) => (tool.name === "b" ? { ...tool, approval: "always" as const } : tool));
		const { model } = modelOf([answer(asks("a"), asks("b"))]);
		const stop = new AbortController();
		const { checkpoints, checkpoint } = keeping(({ state }) => {
			if (state.calls[0]?.status === "completed") stop.abort();
		});
		const setup = await setupOf({}, model, asking);
		const context = { signal: stop.signal, answer: () => new Promise<never>(() => {}) };
		await collect(reasonAct({ ...setup, checkpoint }, request, context));
		return checkpoints.find(({ state }) => state.calls[0]?.status === "completed")!;
	}

	const asking = () => {
		const { acted, tools } = noting();
		return { acted, tools: tools.map((tool) => ({ ...tool, approval: "always" as const })) };
	};
	const resultsIn = ({ messages }: { messages: readonly { role: string; content: unknown }[] }) =>
		messages.filter(({ role }) => role === "toolResult").map(({ content }) => JSON.stringify(content));

	test("approved: it runs now, before the model is asked, and the completed one does not", async () => {
		const from = await waiting();
		const { acted, tools } = asking();
		const decided = { id: "K7Q2", state: "approved" as const, callId: "id_b", digest: digestOf("b", {}) };
		const { calls, events } = await continued(from, { answer: decided }, [answer(text("Done."))], tools);
		expect(acted).toEqual(["b"]);
		expect(resultsIn(calls[0]!)).toEqual([expect.stringContaining("a done"), expect.stringContaining("b done")]);
		expect(events.flatMap((event) => (event.type === "tool" ? [`${event.callId} ${event.status}`] : []))).toEqual([
			"id_b started",
			"id_b completed",
		]);
	});

	test("is in a checkpoint before anybody is asked, although no tool has begun", async () => {
		const { model } = modelOf([answer(text("May I? "), asks("b"))]);
		const tools = [toolOf("b", { approval: "always" })];
		const stop = new AbortController();
		const told: string[] = [];
		const checkpoint = ({ state, threads }: Checkpoint) => {
			told.push(
				`${state.calls.map(({ status }) => status).join(" ")} ${Object.values(threads)[0]?.messages.at(-1)?.role}`,
			);
			return undefined;
		};
		const ask = () => {
			told.push("asked");
			stop.abort();
			return new Promise<never>(() => {});
		};
		const context = { signal: stop.signal, answer: ask };
		await collect(reasonAct({ ...(await setupOf({}, model, tools)), checkpoint }, request, context));
		expect(told.slice(0, 2)).toEqual(["announced assistant", "asked"]);
	});

	test("denied: it fails with the reason; answered: that is its result", async () => {
		const from = await waiting();
		for (const [decided, told] of [
			[{ state: "denied" as const, reason: "not today" }, "not run: not today"],
			[{ state: "answered" as const, text: "blue" }, "blue"],
		] as const) {
			const { acted, tools } = asking();
			const answered = { id: "K7Q2", callId: "id_b", ...decided };
			const { calls } = await continued(from, { answer: answered }, [answer(text("Done."))], tools);
			expect(acted).toEqual([]);
			expect(resultsIn(calls[0]!)[1]).toContain(told);
		}
	});
});

test("A5: the digest of the configuration changes with agents, tools and phases, and with nothing else", async () => {
	const { model } = modelOf([]);
	const hashOf = async (config: ReasonActConfig, names: string[]) =>
		reasonActEngine(
			await setupOf(
				config,
				model,
				names.map((name) => toolOf(name)),
			),
		).configHash;
	const before = await hashOf({}, ["a", "b"]);
	expect(await hashOf({ systemPrompt: "another", attemptsMax: 5 }, ["b", "a"])).toBe(before);
	expect(await hashOf({}, ["a"])).not.toBe(before);
	expect(await hashOf({ phases: { party: {} } }, ["a", "b"])).not.toBe(before);
});

test("A5: the order of the agents does not change the configuration's hash", async () => {
	const hashOf = async (names: string[]) =>
		(await teamOf(Object.fromEntries(names.map((name) => [name, []])))).engine.configHash;
	expect(await hashOf(["lead", "b", "a"])).toBe(await hashOf(["a", "b", "lead"]));
	expect(await hashOf(["lead", "b", "c"])).not.toBe(await hashOf(["a", "b", "lead"]));
});

test("A5: a checkpoint holds what a tool answered once", async () => {
	const big = toolOf("big", { execute: async () => textResult("x".repeat(10_000)) });
	const steps = [1, 2, 3, 4].map((n) => answer(asks("big", {}, `c${n}`)));
	const last = (
		await recorded([...steps, answer(asks("end", {}, "c5")), answer(text("Done."))], [big, toolOf("end")])
	).at(-1)!;
	expect(JSON.stringify(last).match(/x{10000}/g)).toHaveLength(4);
	expect(last.state.calls.map(({ status }) => status)).toEqual(Array(5).fill("completed"));
});

test("A4, A5: a run that was cut off twice owes the model what became of the call that was approved in between", () => {
	const call = (callId: string, status: "completed" | "started") => ({
		callId,
		modelId: callId,
		name: callId,
		args: {},
		agent: "main",
		status,
	});
	const result = {
		role: "toolResult" as const,
		toolCallId: "a",
		toolName: "a",
		content: [],
		isError: false,
		timestamp: 0,
	};
	const messages = [messageOf([asks("a", {}, "a"), asks("b", {}, "b")]), result];
	const state = { used: {} as never, custom: {}, calls: [call("a", "completed"), call("b", "started")] };
	expect(missingResults(messages, state, 0)).toMatchObject([{ toolCallId: "b", isError: true }]);
	expect(missingResults([...messages, { ...result, toolCallId: "b" }], state, 0)).toEqual([]);
});

describe("A5, A7: a checkpoint of several agents", () => {
	const answersOf = (): Record<string, Answers> => ({
		lead: [routes(["a", "b"], { parallel: true, phase: "plan" }), routes(["END"])],
		a: [answer(text("A."), asks("a", {}, "x")), completes("did a")],
		b: [answer(text("B."), asks("b", {}, "x")), completes("did b")],
	});

	async function recordedTeam() {
		const { checkpoints, checkpoint } = keeping();
		const { acted, tools } = noting();
		const { engine } = await teamOf(answersOf(), { tools, setup: { checkpoint } });
		await collect(engine.run(request, context));
		expect(acted.toSorted()).toEqual(["a", "b"]);
		return checkpoints;
	}

	const resumedTeam = async (from: Checkpoint, answers: Record<string, Answers>) => {
		const { acted, tools } = noting();
		const { setup, calls } = await teamOf(answers, { tools });
		return { events: await collect(reasonAct(setup, request, context, from)), calls, acted };
	};

	test("holds every lane, and continues all of them", async () => {
		const checkpoints = await recordedTeam();
		const both = checkpoints.find(
			({ state }) => state.calls.filter(({ status }) => status === "completed").length === 3,
		)!;
		expect(both.lanes.map(({ activation }) => activation.agent)).toEqual(["a", "b"]);
		expect(both.phase).toBe("plan");
		const { lead, a, b } = answersOf();
		const { events, calls, acted } = await resumedTeam(both, { lead: lead!.slice(1), a: a!.slice(1), b: b!.slice(1) });
		expect(acted).toEqual([]);
		expect([calls.a!.length, calls.b!.length, calls.lead!.length]).toEqual([1, 1, 1]);
		expect(calls.a![0]!.messages.at(-1)).toMatchObject({ role: "toolResult", content: [text("a done")] });
		expect(calls.lead![0]!.messages.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(
			expect.arrayContaining(["[a] did a", "[b] did b"]),
		);
		expect(textOf(events)).toBe("");
	});

	test("between two agents has no active agent and the next ones", async () => {
		const checkpoints = await recordedTeam();
		const between = checkpoints.find(({ lanes, line }) => lanes.length === 0 && line.length > 0)!;
		expect(between.line).toEqual([["a", "b"]]);
		const { lead, a, b } = answersOf();
		const { calls, acted } = await resumedTeam(between, { lead: lead!.slice(1), a: a!, b: b! });
		expect(acted.toSorted()).toEqual(["a", "b"]);
		expect(calls.lead).toHaveLength(1);
	});
});
