/** Several agents: routing, hand-over, lanes, failures, phases, what each of them reads, and loops that end. */

import { describe, expect, test } from "vitest";
import { END } from "../../../packages/daemon/src/engine/agents.ts";
import { textResult } from "../../../packages/daemon/src/engine/tool.ts";
import type { EngineEvent, EngineRequest } from "../../../packages/protocol/src/engine.ts";
import { requestOf } from "../demo-play.ts";
import { run } from "../pi-kit.ts";
import {
	type Answers,
	answer,
	asks,
	completes,
	refusal,
	routes,
	shown,
	type TeamOptions,
	teamOf,
	text,
	toolOf,
} from "./kit.ts";

async function team(
	answers: Record<string, Answers>,
	options: TeamOptions & { request?: Partial<EngineRequest> } = {},
) {
	const { engine, calls } = await teamOf(answers, options);
	const ran = await run(engine, requestOf("hello", options.request));
	return { ...ran, calls, texts: shown(ran.events).filter((line) => line.startsWith("text")) };
}

const read = (call: { messages: { role: string; content: unknown }[] } | undefined) =>
	call!.messages.filter(({ role }) => role === "user").map(({ content }) => content);

const entries = (events: readonly EngineEvent[]) =>
	events.flatMap((event) => (event.type === "log" ? [event.entry] : []));

describe("a lead", () => {
	test("R2-41, A19: routes to agents one after another, gets the run back and ends it", async () => {
		const { calls, texts, error } = await team({
			lead: [routes(["a", "b"], { phase: "plan" }), routes([END])],
			a: [completes("did a")],
			b: [completes("did b")],
		});
		expect(error).toBeUndefined();
		expect(texts).toEqual(["text did a!", "text did b!"]);
		expect(read(calls.a![0])).toEqual(["hello", "[lead] go"]);
		expect(read(calls.b![0])).toEqual(["hello", "[lead] go", "[a] did a"]);
		expect(read(calls.lead![1])).toEqual(["hello", "[a] did a", "[b] did b"]);
	});

	test("A20: keeps its own words and calls of the run as its own", async () => {
		const { calls } = await team(
			{
				lead: [answer(text("Hm."), asks("route", { agents: ["a"], reason: "go" })), routes(["a"]), routes([END])],
				a: [answer(text("One.")), answer(text("Two."))],
				// In chat an agent that just stops ends the run; in plan it is completed in its place.
			},
			{ config: { phase: "plan", attemptsMax: 1 } },
		);
		expect(calls.lead![1]!.messages[1]).toMatchObject({
			role: "assistant",
			content: [{ text: "Hm." }, { name: "route" }],
		});
		expect(calls.a![1]!.messages.slice(1)).toMatchObject([
			{ role: "user", content: "[lead] go" },
			{ role: "assistant", content: [{ text: "One." }] },
			{ role: "user", content: "[lead] go" },
		]);
	});

	test("R2-98, A22: a change of phase is an event, is enforced, and the prompt says so while it is recent", async () => {
		const answers = { lead: [routes(["a"], { phase: "execute" }), routes([END])], a: [answer(text("x"))] };
		const { calls, events } = await team(answers);
		expect(events).toContainEqual({ type: "phase", name: "execute", because: "go", agent: "lead" });
		expect(calls.a).toHaveLength(2);
		expect(calls.a![0]!.systemPrompt).toContain("changed from chat to execute because: go");
		const late = await team(answers, { setup: { recentTransitionMs: 0 } });
		expect(late.calls.a![0]!.systemPrompt).not.toContain("changed from");
	});

	test("starts from the session's phase, with why it was entered", async () => {
		const phase = { name: "plan", since: Date.now(), from: "chat", because: "it is time" };
		const { calls } = await team({ lead: [routes([END])], a: [answer()] }, { request: { phase } });
		const { from: _, ...first } = phase;
		const set = await team({ lead: [routes([END])], a: [answer()] }, { request: { phase: first } });
		expect(set.calls.lead![0]!.systemPrompt).toContain("The phase has just been set to plan because: it is time");
		expect(calls.lead![0]!.systemPrompt).toContain("changed from chat to plan because: it is time");
		const odd = await team(
			{ lead: [routes([END])], a: [answer()] },
			{ request: { phase: { name: "gone", since: 0 } } },
		);
		expect(odd.calls.lead![0]!.systemPrompt).toContain("The phase is chat.");
	});

	test("R2-42, X10: that never routes fails the run; R2-114: or takes its fallback", async () => {
		const silent = [answer(text("hm"))];
		expect((await team({ lead: silent, a: [completes("x")] })).error).toMatchObject({
			code: "engine_failed",
			message: "lead gave no routing instructions in 2 attempts; set a `fallback` for it to go on without",
		});
		const ended = await team({ lead: silent, a: [] }, { agents: { lead: { fallback: END } } });
		expect(ended.error).toBeUndefined();
		const helped = await team(
			{ lead: [answer(), answer(), routes([END])], a: [completes("x")] },
			{ config: { phase: "plan" }, agents: { lead: { fallback: "a" } } },
		);
		expect(helped.error).toBeUndefined();
		expect(helped.calls.a).toHaveLength(1);
	});

	test("is answered with the agents and phases there are when it names others", async () => {
		const { calls, error, events } = await team({
			lead: [routes(["nobody"]), routes(["a"], { phase: "lunch" }), routes([END])],
			a: [completes("x")],
		});
		expect(error).toBeUndefined();
		const results = calls.lead![2]!.messages.filter(({ role }) => role === "toolResult");
		expect(results).toMatchObject([{ isError: true }, { isError: true }]);
		expect(JSON.stringify(results[0])).toMatch(/enum.*\ba\b.*END/);
		expect(JSON.stringify(results[1])).toContain("brainstorm");
		expect(calls.a).toEqual([]);
		expect(shown(events).filter((line) => line.endsWith("failed"))).toHaveLength(2);
	});

	test("A10: agents that the senders may not use are not in its schema, and refused", async () => {
		const { calls } = await team(
			{ lead: [routes(["b"]), routes([END])], a: [completes("x")], b: [completes("x")] },
			{ request: { allowedAgents: ["lead", "a"] } },
		);
		const route = calls.lead![0]!.tools.find(({ name }) => name === "route")!;
		expect(route.parameters).toMatchObject({ properties: { agents: { items: { enum: ["a", END] } } } });
		expect(calls.b).toEqual([]);
		expect(calls.lead![1]!.messages.at(-1)).toMatchObject({ role: "toolResult", isError: true });
	});

	test("R2-55, R2-85, R2-135, A8: its words are hidden, its routing is shown with the reason, and its last answer is for people", async () => {
		const { events, texts } = await team(
			{
				lead: [
					answer(text("secret"), asks("route", { agents: ["a"], reason: "it writes best" })),
					answer(text("thinking aloud"), asks("end_conversation", { response: "All done." })),
				],
				a: [completes("x")],
			},
			{ config: { phase: "plan" } },
		);
		const messages = events.filter(({ type }) => type === "message");
		expect(messages).toEqual([
			{ type: "message", visible: false, agent: "lead" },
			{ type: "message", agent: "a" },
			{ type: "message", visible: false, agent: "lead" },
			{ type: "message", agent: "lead" },
		]);
		expect(events).toContainEqual(
			expect.objectContaining({ name: "route", status: "started", agent: "lead", summary: "➡️ a: it writes best" }),
		);
		expect(texts.at(-1)).toBe("text All done.");
		const open = await team(
			{ lead: [answer(text("hi"), asks("route", { agents: [END], reason: "r" }))], a: [] },
			{
				agents: { lead: { visible: true } },
			},
		);
		expect(open.events.filter(({ type }) => type === "message")).toEqual([{ type: "message", agent: "lead" }]);
	});
});

describe("events", () => {
	test("A7: every text, tool, message and usage says which agent made it", async () => {
		const { events } = await team(
			{ lead: [routes(["a"]), routes([END])], a: [answer(text("x"), asks("look")), completes("y")] },
			{ config: { phase: "plan" }, tools: [toolOf("look")] },
		);
		const owned = events.filter(({ type }) => ["text", "message", "tool", "usage"].includes(type));
		expect(owned.every((event) => "agent" in event)).toBe(true);
		// Before the message is whole, so that its end can say it.
		const closing = events.flatMap((event) =>
			event.type === "usage"
				? [`${event.agent} ${event.model} ${event.input}`]
				: event.type === "message_end"
					? [`${event.agent} end`]
					: [],
		);
		expect(closing).toEqual(["lead m 3", "lead end", "a m 6", "a end", "lead m 3", "lead end"]);
	});

	test("A7: with one agent none of them does", async () => {
		const { events } = await team({ only: [answer(text("x"))] });
		expect(events.filter((event) => "agent" in event)).toEqual([]);
	});

	test("R2-88, R2-93: the execution log has routing, attempts, reminders, completions and model calls", async () => {
		const { events } = await team({
			lead: [routes(["a"], { phase: "plan" }), routes([END])],
			a: [answer(text("x")), completes("did")],
		});
		const kinds = entries(events).map(({ kind, agent }) => `${agent} ${kind}`);
		expect(kinds).toEqual([
			...["lead model", "lead attempt", "lead routing"],
			...["a model", "a attempt", "a reminder", "a model", "a attempt", "a completion"],
			...["lead model", "lead attempt"],
		]);
		const byKind = new Map(entries(events).map((entry) => [entry.kind, entry]));
		expect(byKind.get("completion")).toMatchObject({ text: "did", data: { by: "tool" } });
		expect(byKind.get("model")).toMatchObject({ data: { ms: expect.any(Number), failed: false, tokens: 5 } });
	});

	test("X12, R2-12, R2-92: a reasoning block is in the execution log once, and in the answer every time", async () => {
		const think = { type: "thinking_delta", contentIndex: 0, delta: "hm", partial: undefined as never } as const;
		const { events } = await team(
			{
				only: [
					[think, ...answer(asks("look"))],
					[think, ...answer(text("x"))],
				],
			},
			{
				tools: [toolOf("look")],
			},
		);
		expect(entries(events).filter(({ kind }) => kind === "reasoning")).toEqual([
			{ kind: "reasoning", agent: "only", text: "hm" },
		]);
		expect(events.filter(({ type }) => type === "reasoning")).toHaveLength(2);
	});
});

/** Two agents that each wait until both are at work. */
function meeting() {
	const { promise, resolve } = Promise.withResolvers<void>();
	let here = 0;
	return toolOf("meet", {
		async execute(_args, { agent }) {
			here += 1;
			if (here === 2) resolve();
			await promise;
			return textResult(`${agent} met`);
		},
	});
}

describe("A7: side by side", () => {
	const both = { lead: [routes(["a", "b"], { parallel: true }), routes([END])] };
	const plan = { config: { phase: "plan" } };

	test("agents work at once, each with its own words, and the lead reads all of them afterwards", async () => {
		const work = (name: string) => [answer(text(`I am ${name}.`), asks("meet", {}, "id")), completes(`did ${name}`)];
		const { calls, error, events } = await team(
			{ ...both, a: work("a"), b: work("b") },
			{ ...plan, tools: [meeting()] },
		);
		expect(error).toBeUndefined();
		expect(calls.lead).toHaveLength(2);
		expect(new Set(read(calls.lead![1]).slice(1))).toEqual(new Set(["[a] did a", "[b] did b"]));
		expect(read(calls.b![0])).toEqual(["hello", "[lead] go"]);
		const met = events.filter(
			(event) => event.type === "tool" && event.name === "meet" && event.status === "completed",
		);
		expect(met).toMatchObject([
			{ agent: "a", result: "a met" },
			{ agent: "b", result: "b met" },
		]);
		expect(new Set(met.map((event) => (event as { callId: string }).callId)).size).toBe(2);
		for (const name of ["a", "b"])
			expect(calls[name]![1]!.messages.at(-1)).toMatchObject({
				role: "toolResult",
				content: [{ text: `${name} met` }],
			});
	});

	test("one that fails does not stop the other, and the lead reads it", async () => {
		const { calls, error, texts } = await team({ ...both, a: [refusal("401 no key")], b: [completes("did b")] }, plan);
		expect(error).toBeUndefined();
		expect(texts).toEqual(["text did b!"]);
		expect(read(calls.lead![1]).join("\n")).toMatch(/\[a\] a failed: .*401 no key/);
	});

	test("A21: `complete` of one does not abort the tools of the other; exclusive tools of both run alone", async () => {
		let running = 0;
		let most = 0;
		const alone = toolOf("alone", {
			exclusive: true,
			async execute() {
				running += 1;
				most = Math.max(most, running);
				await new Promise((resolve) => setImmediate(resolve));
				running -= 1;
				return textResult("");
			},
		});
		const work = [answer(asks("alone")), answer(asks("alone")), completes("x")];
		const { events, error } = await team(
			{ ...both, a: work, b: [...work.slice(0, 1), ...work] },
			{ ...plan, tools: [alone] },
		);
		expect(error).toBeUndefined();
		expect(most).toBe(1);
		expect(shown(events).filter((line) => line.includes("failed"))).toEqual([]);
		expect(shown(events).filter((line) => line.startsWith("id_alone") && line.endsWith("completed"))).toHaveLength(5);
	});

	test("A18: a limit that one reaches ends the run, and what the other runs is paired", async () => {
		const endless = toolOf("endless", {
			execute: (_args, { signal }) =>
				new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("killed")))),
		});
		const { error, events } = await team(
			{ ...both, a: [answer(asks("look"))], b: [answer(asks("endless"))] },
			{ config: { phase: "plan", modelCallsMax: 6 }, tools: [toolOf("look"), endless] },
		);
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("modelCallsMax") });
		expect(shown(events).filter((line) => line.startsWith("id_endless"))).toEqual([
			"id_endless started",
			"id_endless failed",
		]);
	});
});

describe("who begins", () => {
	const answers = () => ({ lead: [routes([END])], a: [answer(text("I am a."))] });

	test("A25: the requested agent answers, by default the lead", async () => {
		expect((await team(answers(), { request: { agent: "a" } })).texts).toEqual(["text I am a."]);
		expect((await team(answers())).calls.lead).toHaveLength(1);
		// The default name of the agent in access rules.
		expect((await team(answers(), { request: { agent: "main" } })).calls.lead).toHaveLength(1);
	});

	test("a missing or forbidden agent fails the run with a message", async () => {
		expect((await team(answers(), { request: { agent: "missing" } })).error).toMatchObject({
			message: 'there is no agent "missing"',
		});
		expect((await team(answers(), { request: { agent: "a", allowedAgents: ["lead"] } })).error).toMatchObject({
			message: expect.stringContaining('the sender may not use the agent "a"'),
		});
	});

	test("a single agent answers to every name", async () => {
		expect((await team({ only: [answer(text("hi"))] }, { request: { agent: "main" } })).texts).toEqual(["text hi"]);
	});
});

test("A20: an agent reads earlier turns with its own words as its own and the others' as quotes", async () => {
	const { engine, calls } = await teamOf({ lead: [routes([END])], a: [answer(text("x"))] });
	const earlier = [
		{ role: "user", text: "first" },
		{ role: "assistant", text: "from a", agent: "a" },
		{
			role: "assistant",
			text: "from b",
			agent: "b",
			toolCalls: [{ callId: "1", name: "t", args: {}, status: "completed", result: "" }],
		},
		{ role: "assistant", text: "from nobody" },
	] as const;
	await run(engine, requestOf("hello", { agent: "a" }, [...earlier]));
	expect(calls.a![0]!.messages.map(({ role, content }) => [role, content])).toMatchObject([
		["user", "first"],
		["assistant", [{ text: "from a" }]],
		["user", "[b] from b"],
		["assistant", [{ text: "from nobody" }]],
		["user", "hello"],
	]);
});

describe("failures", () => {
	const two = { lead: [routes(["a", "b"]), routes([END])] };

	test("an agent that fails does not stop those behind it, and the lead reads it", async () => {
		const { calls, texts, error } = await team(
			{ ...two, a: [refusal("401 no key")], b: [completes("did b")] },
			{
				config: { phase: "plan" },
			},
		);
		expect(error).toBeUndefined();
		expect(texts).toEqual(["text did b!"]);
		expect(read(calls.lead![1])[1]).toMatch(/^\[a\] a failed: .*401 no key/);
	});

	test("R2-114: its fallback takes over and reads what happened", async () => {
		const { calls, error } = await team(
			{ lead: [routes(["a"]), routes([END])], a: [refusal("401 no key")], b: [completes("did b")] },
			{ config: { phase: "plan" }, agents: { a: { fallback: "b" } } },
		);
		expect(error).toBeUndefined();
		expect(read(calls.b![0]).at(-1)).toMatch(/^\[a\] a failed: .*401/);
		expect(read(calls.lead![1]).at(-1)).toBe("[b] did b");
	});

	test("a fallback that the senders may not use is ignored", async () => {
		const { calls } = await team(
			{ lead: [routes(["a"]), routes([END])], a: [refusal("401 no key")], b: [completes("did b")] },
			{ config: { phase: "plan" }, agents: { a: { fallback: "b" } }, request: { allowedAgents: ["lead", "a"] } },
		);
		expect(calls.b).toEqual([]);
		expect(calls.lead).toHaveLength(2);
	});
});

test("A18: a lead and an agent that call each other endlessly are stopped by routesMax", async () => {
	const { calls, error } = await team(
		{ lead: [routes(["a"])], a: [completes("again")] },
		{
			config: { phase: "plan", routesMax: 4 },
		},
	);
	expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("routesMax") });
	expect(calls.lead).toHaveLength(5);
});

describe("A26: words that arrive during a run", () => {
	test("are read before the next model call, once, by everybody who works from then on", async () => {
		const arriving = [[], [{ role: "user" as const, text: "and hurry" }]];
		const { engine, calls } = await teamOf(
			{ lead: [routes(["a"]), routes([END])], a: [completes("x")] },
			{ config: { phase: "plan" } },
		);
		const context = { signal: new AbortController().signal, inbox: { take: async () => arriving.shift() ?? [] } };
		for await (const _ of engine.run(requestOf("hello"), context));
		expect(engine.injects).toBe(true);
		expect(read(calls.lead![0])).toEqual(["hello"]);
		expect(read(calls.a![0])).toEqual(["hello", "[lead] go", "and hurry"]);
		expect(read(calls.lead![1])).toEqual(["hello", "[a] x", "and hurry"]);
	});
});

describe("tools of the house", () => {
	const source = (names: string[]) => ({ name: "server", tools: async () => names.map((name) => toolOf(name)) });
	const offered = (call: { tools: { name: string }[] } | undefined) => call!.tools.map(({ name }) => name);

	test("are asked for once per run and offered by the agent's names, within what the run may use", async () => {
		const { calls, events } = await team(
			{
				only: [answer(asks("mcp__a__bad"), asks("mcp__b__x")), answer(text("ok"))],
			},
			{
				agents: { only: { tools: ["look", "mcp__a__*"] } },
				tools: [toolOf("look"), toolOf("other")],
				setup: { toolSources: [source(["mcp__a__good", "mcp__a__bad", "mcp__b__x", "route", "look"])] },
				request: { deniedTools: ["mcp__a__bad"] },
			},
		);
		expect(offered(calls.only![0])).toEqual(["look", "mcp__a__good"]);
		expect(shown(events).filter((line) => line.endsWith("failed"))).toHaveLength(2);
	});

	test("a source that rejects offers nothing, and the log says so", async () => {
		const down = { name: "docs", tools: () => Promise.reject(new Error("down")) };
		const { error, events } = await team({ only: [answer(text("ok"))] }, { setup: { toolSources: [down] } });
		expect(error).toBeUndefined();
		expect(entries(events)).toContainEqual({ kind: "note", text: "docs offers no tools: down" });
	});

	test("R2-123: a configured priority decides which call starts first", async () => {
		const { events } = await team(
			{ only: [answer(asks("low"), asks("high")), answer()] },
			{ config: { toolsParallelMax: 1 }, tools: [toolOf("low"), toolOf("high")], setup: { priority: { "hi*": 5 } } },
		);
		const started = events.flatMap((event) =>
			event.type === "tool" && event.status === "started" ? [event.name] : [],
		);
		expect(started).toEqual(["high", "low"]);
	});

	test("an agent's own policy, time limit and description come before the tool's", async () => {
		const slow = toolOf("mcp__a__slow", { execute: () => new Promise(() => {}) });
		const { events } = await team(
			{ only: [answer(asks("mcp__a__slow", { q: "x" }), asks("mcp__a__no")), answer()] },
			{
				agents: { only: { approval: { mcp__a__no: "always" }, timeoutMs: { "mcp__a__*": 5 } } },
				tools: [slow, toolOf("mcp__a__no")],
				setup: { describe: { mcp__a__slow: ({ q }) => `Waiting for ${String(q)}` }, toolSettleMs: 1 },
				request: { owner: true },
			},
		);
		expect(events).toContainEqual(expect.objectContaining({ status: "started", summary: "Waiting for x" }));
		expect(events).toContainEqual(expect.objectContaining({ result: "mcp__a__slow did not finish within 5 ms" }));
		expect(events).toContainEqual(
			expect.objectContaining({ name: "mcp__a__no", result: expect.stringContaining("approval") }),
		);
	});
});

test("R2-125, A23: what agents and tools do is counted, with bounded labels", async () => {
	const { createCounters } = await import("../../../packages/daemon/src/std/counters.ts");
	const counters = createCounters();
	await team(
		{ only: [answer(asks("look"), asks("nothing")), answer(text("x"))] },
		{
			tools: [toolOf("look")],
			setup: { counters },
		},
	);
	const read = counters
		.read()
		.map(({ counter, labels, value }) => [counter, ...Object.values(labels), value].join(" "));
	expect(read).toEqual(expect.arrayContaining(["model_calls only answered 2", "agent_attempts only end 1"]));
	const few = createCounters(1);
	for (const tool of ["a", "b", "c"]) few.add("n", { tool });
	expect(few.read().map(({ labels, value }) => [labels.tool, value])).toEqual([
		["a", 1],
		["other", 2],
	]);
});
