/** The loop with models made of events: attempts, tools, terminal tools, failures, aborts, long contexts. */

import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../packages/daemon/src/engine/reason-act/model/model.ts";
import { durations } from "../../../packages/daemon/src/engine/reason-act/setup.ts";
import { textResult } from "../../../packages/daemon/src/engine/tool.ts";
import type { EngineEvent } from "../../../packages/protocol/src/engine.ts";
import { collect, requestOf } from "../demo-play.ts";
import { run } from "../pi-kit.ts";
import { answer, asks, delta, engineOf, messageOf, type Options, refusal, shown, text, toolOf } from "./kit.ts";

const plan = (config: Options["config"] = {}) => ({ config: { phase: "plan", ...config } });

async function play(answers: Parameters<typeof engineOf>[0], options: Options = {}, request = requestOf("hello")) {
	const { engine, calls } = await engineOf(answers, options);
	const ran = await run(engine, request);
	return { ...ran, calls, shown: shown(ran.events) };
}

const usage = (events: readonly EngineEvent[]) => events.filter(({ type }) => type === "usage");
const roles = (messages: readonly { role: string }[]) => messages.map(({ role }) => role).join(" ");

describe("an answer", () => {
	test("R2-2, R2-58: passes through, with the usage once at the end", async () => {
		const { shown, events, error } = await play([answer(text("Hi."))]);
		expect(shown).toEqual(["message", "text Hi."]);
		expect(usage(events)).toEqual([{ type: "usage", input: 3, output: 2, model: "m", cache_read: 0, cache_write: 0 }]);
		expect(error).toBeUndefined();
	});

	test("R2-119: an empty one is an empty run", async () => {
		const { shown, error } = await play([answer()]);
		expect(shown).toEqual([]);
		expect(error).toBeUndefined();
	});

	test("that is said only in the finished message is said, too", async () => {
		const done = { type: "done", reason: "stop", message: messageOf([text("All at once.")]) } as const;
		expect((await play([[delta("All"), done]])).shown).toEqual(["message", "text All", "text  at once."]);
	});

	test("R2-55, A23: `<think>` at its start is reasoning, however it is cut, and the model does not get it back", async () => {
		const words = "<think>hm, tags</think>\n\nHi <think>.";
		const pieces = words.split("").map(delta);
		const message = messageOf([text(words), asks("look")]);
		const { events, calls } = await play(
			[[...pieces, { type: "done", reason: "toolUse", message }], answer(text("ok"))],
			{
				tools: [toolOf("look")],
			},
		);
		const joined = (type: string) =>
			events.map((event) => (event.type === type && "delta" in event ? event.delta : "")).join("");
		expect(joined("reasoning")).toBe("hm, tags");
		expect(joined("text")).toBe("Hi <think>.ok");
		expect(calls[1]!.messages[1]).toMatchObject({ content: [text("Hi <think>."), { name: "look" }] });
	});
});

describe("tools", () => {
	test("R2-6, R2-20, R2-56, A21: run, are shown with their descriptions, and the model gets their results in order", async () => {
		const { events, calls, shown } = await play(
			[answer(text("Let me see."), asks("look", { path: "a" }), asks("read", { path: "b.md" })), answer(text("Done."))],
			{ tools: [toolOf("look"), toolOf("read")] },
		);
		expect(shown).toEqual([
			...["message", "text Let me see.", "id_look started", "id_read started"],
			...["id_look completed", "id_read completed", "message", "text Done."],
		]);
		expect(events).toContainEqual(
			expect.objectContaining({ status: "started", args: { path: "b.md" }, summary: "📖 Reading b.md" }),
		);
		expect(roles(calls[1]!.messages)).toBe("user assistant toolResult toolResult");
		expect(calls[1]!.messages.slice(2)).toMatchObject([{ toolCallId: "id_look" }, { toolCallId: "id_read" }]);
	});

	test("R2-117: repeated ids are told apart, for people and for the model", async () => {
		const { calls, shown } = await play([answer(asks("look", {}, "x"), asks("look", {}, "x")), answer()], {
			tools: [toolOf("look")],
		});
		expect(shown).toEqual(["x started", "x_2 started", "x completed", "x_2 completed"]);
		expect(calls[1]!.messages[1]).toMatchObject({ content: [{ id: "x" }, { id: "x_2" }] });
	});

	test("R2-74: wrong arguments and unknown names never run; the model reads it and continues", async () => {
		const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
		const { events, calls, shown } = await play(
			[answer(asks("look", { n: "many" }), asks("lok")), answer(text("Sorry."))],
			{ tools: [toolOf("look", { parameters })] },
		);
		expect(shown).toEqual(["id_look failed", "id_lok failed", "message", "text Sorry."]);
		expect(events.find(({ type }) => type === "tool")).toMatchObject({
			args: { n: "many" },
			result: expect.stringContaining("n"),
		});
		expect(calls[1]!.messages.slice(2)).toMatchObject([{ isError: true }, { isError: true }]);
	});

	test("a call in a message that was cut off does not run", async () => {
		const cut = messageOf([asks("look")], { stopReason: "length" });
		const { shown } = await play([[{ type: "done", reason: "length", message: cut }], answer()], {
			tools: [toolOf("look")],
		});
		expect(shown).toEqual(["id_look failed"]);
	});

	test("R2-21, R2-76, R2-117: a provider's own tools are paired, with missing and doubled starts", async () => {
		const start = { type: "tool_start", id: "a", name: "search", args: { q: 1 } } as const;
		const complete = (id: string) => ({ type: "tool_complete", id, name: "search", result: "r" }) as const;
		const { shown } = await play([[start, start, complete("a"), complete("b"), complete("b"), start, ...answer()]]);
		expect(shown).toEqual([
			...["message", "a started", "a completed", "b started", "b completed", "b_2 started", "b_2 completed"],
			...["a_2 started", "a_2 failed"],
		]);
	});

	test("A4: a tool acts only after its start was taken and more was asked for", async () => {
		const acted: string[] = [];
		const look = toolOf("look", {
			async execute() {
				acted.push("look");
				return textResult("");
			},
		});
		const { engine } = await engineOf([answer(asks("look")), answer()], { tools: [look] });
		const reader = engine.run(requestOf("x"), { signal: new AbortController().signal })[Symbol.asyncIterator]();
		const started = await reader.next();
		expect([started.value].flat().slice(-2)).toMatchObject([{ status: "started" }, { type: "checkpoint" }]);
		await new Promise((resolve) => setImmediate(resolve));
		expect(acted).toEqual([]);
		await reader.next();
		expect(acted).toEqual(["look"]);
		await reader.return?.();
	});

	test("a tool that needs approval never runs without an approver, and runs for an owner", async () => {
		const tools = [toolOf("write", { approval: "non-owner" })];
		const answers = [answer(asks("write")), answer()];
		expect((await play(answers, { tools }, requestOf("x", { owner: false }))).shown).toEqual(["id_write failed"]);
		const owners = await play(answers, { tools }, requestOf("x", { owner: true }));
		expect(owners.shown).toEqual(["id_write started", "id_write completed"]);
	});

	test("A23: custom state is shared by the run's tools and survives a retry", async () => {
		const seen: unknown[] = [];
		const note = toolOf("note", {
			async execute(_args, { state }) {
				seen.push(state.getState("n"));
				state.setState("n", seen.length);
				return textResult("");
			},
		});
		await play([answer(asks("note")), answer(), answer(asks("note")), answer()], { ...plan(), tools: [note] });
		expect(seen).toEqual([undefined, 1]);
	});
});

describe("termination", () => {
	test("R2-38, R2-60, R2-62, R2-63, R2-64, X2: two executions, one reminder; each is a separate message, the context is kept", async () => {
		const { shown, calls, error } = await play([answer(text("One.")), answer(text("Two."))], plan());
		expect(shown).toEqual(["message", "text One.", "message", "text Two."]);
		expect(error).toBeUndefined();
		expect(roles(calls[1]!.messages)).toBe("user assistant user");
		expect(calls[1]!.messages[2]).toMatchObject({ content: expect.stringContaining("'complete' tool") });
		expect(calls).toHaveLength(2);
	});

	test("R2-34: no reminder in an exempt phase, and no `complete` on offer", async () => {
		const { calls } = await play([answer(text("One."))], { config: { phase: "brainstorm" } });
		expect(calls).toHaveLength(1);
		expect(calls[0]!.tools).toEqual([]);
	});

	test("R2-57, A19: `complete` ends at once; its response is shown only if nothing else was said", async () => {
		const complete = asks("complete", { response: "Here.", summary: "s" });
		const silent = await play([answer(complete)], plan());
		expect(silent.calls).toHaveLength(1);
		expect(silent.shown).toEqual(["id_complete started", "id_complete completed", "message", "text Here."]);
		const spoken = await play([answer(text("Words."), complete)], plan());
		expect(spoken.shown.filter((line) => line.startsWith("text"))).toEqual(["text Words."]);
		const reminded = await play([answer(text("Words.")), answer(complete)], plan());
		expect(reminded.shown.filter((line) => line.startsWith("text"))).toEqual(["text Words."]);
	});

	test("R2-113: attempts by phase, from the configuration", async () => {
		const config = { phase: "plan", attemptsMax: 3, phases: { chores: { attemptsMax: 1 } } };
		expect((await play([answer()], { config })).calls).toHaveLength(3);
		expect((await play([answer()], { config: { ...config, phase: "chores" } })).calls).toHaveLength(1);
	});

	test("R2-120, A18: tools of a later attempt count as one attempt", async () => {
		const answers = [
			answer(text("a")),
			answer(asks("look")),
			answer(asks("look")),
			answer(text("b")),
			answer(text("c")),
		];
		const { calls } = await play(answers, { ...plan(), tools: [toolOf("look")] });
		expect(calls).toHaveLength(4);
	});

	test("R2-126: a strategy that is never content is stopped at attemptsMax", async () => {
		const strategy = { name: "endless", decide: () => ({ type: "retry", reminder: "again" }) as const };
		const { calls, error } = await play([answer()], { setup: { strategy } });
		expect(calls).toHaveLength(2);
		expect(error).toMatchObject({ code: "engine_failed", message: "main did not end in 2 attempts" });
	});
});

describe("failures", () => {
	test("R2-59, R2-70, R2-72: a stream that breaks keeps its text, fails the run and still says what was used", async () => {
		const { shown, events, error } = await play([[delta("Half"), ...refusal("the connection closed")]]);
		expect(shown).toEqual(["message", "text Half"]);
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("cut off") });
		expect(usage(events)).toHaveLength(1);
	});

	test("a stream that just ends, or throws, is a failure", async () => {
		expect((await play([[delta("Half")]])).error).toMatchObject({
			message: expect.stringContaining("without a finish"),
		});
		const stream = async function* () {
			yield delta("Half");
			throw new Error("boom");
		};
		expect((await play([], { model: { stream } })).error).toMatchObject({ message: expect.stringContaining("boom") });
		const unopened = () => {
			throw new Error("no socket");
		};
		expect((await play([], { model: { stream: unopened } })).error).toMatchObject({
			message: expect.stringContaining("no socket"),
		});
	});

	test("A24: what is refused before the first token is tried again, within limits", async () => {
		const setup = { retryDelayMsMax: 1 };
		const again = await play([refusal("429 slow down"), refusal("429 slow down"), answer(text("Hi."))], { setup });
		expect(again.shown).toEqual(["message", "text Hi."]);
		const never = await play([refusal("429 slow down")], { setup });
		expect(never.calls).toHaveLength(3);
		expect(never.error).toMatchObject({ message: expect.stringContaining("429") });
	});

	test("A24: what was shown is never tried again, nor what does not pass", async () => {
		expect((await play([[delta("Half"), ...refusal("429 slow down")]])).calls).toHaveLength(1);
		expect((await play([refusal("401 who are you")])).calls).toHaveLength(1);
	});
});

describe("long runs", () => {
	const big = toolOf("big", { execute: async () => textResult("x".repeat(40_000)) });

	test("R2-136, A24: the oldest results give way, in pairs and with a notice", async () => {
		const ask = (n: number) => answer(asks("big", {}, `c${n}`));
		const { calls, shown, error } = await play([ask(1), ask(2), ask(3), answer(text("Done."))], {
			tools: [big],
			model: { contextTokensMax: 21_000 },
		});
		expect(error).toBeUndefined();
		expect(shown.filter((line) => line.startsWith("compaction"))).toEqual(["compaction start", "compaction end"]);
		const sizes = calls[3]!.messages
			.filter(({ role }) => role === "toolResult")
			.map(({ content }) => JSON.stringify(content).length > 1000);
		expect(sizes).toEqual([false, true, true]);
		expect(roles(calls[3]!.messages)).toBe("user assistant toolResult assistant toolResult assistant toolResult");
	});

	test("A24: a provider that says too long gets half of it, once", async () => {
		const options = { tools: [big], model: { contextTokensMax: 12_000 } };
		const { calls, error } = await play(
			[answer(asks("big")), refusal("prompt is too long"), answer(text("Ok."))],
			options,
		);
		expect(error).toBeUndefined();
		expect(calls).toHaveLength(3);
		const again = await play([answer(asks("big")), refusal("prompt is too long")], options);
		expect(again.calls).toHaveLength(3);
		expect(again.error).toMatchObject({ message: expect.stringContaining("longer than the model can read") });
	});
});

describe("a stop", () => {
	const endless = toolOf("endless", {
		execute: (_args, { signal }) =>
			new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("killed")))),
	});

	test("I12: ends the run without an error, and pairs what runs", async () => {
		const { engine, calls } = await engineOf([answer(asks("endless"))], { tools: [endless] });
		const ran = await run(engine, requestOf("x"), {
			abortOn: (event) => event.type === "tool" && event.status === "started",
		});
		expect(ran.error).toBeUndefined();
		expect(shown(ran.events)).toEqual(["id_endless started", "id_endless failed"]);
		expect(calls).toHaveLength(1);
	});

	test("I12: ends the run although model and tool are deaf", async () => {
		const deaf = toolOf("deaf", { execute: () => new Promise(() => {}) });
		const { engine } = await engineOf([answer(asks("deaf"))], { tools: [deaf], setup: { toolSettleMs: 5 } });
		const ran = await run(engine, requestOf("x"), { abortOn: ({ type }) => type === "tool" });
		expect(shown(ran.events)).toEqual(["id_deaf started", "id_deaf failed"]);
		const stream = async function* () {
			yield delta("Half");
			await new Promise(() => {});
		};
		const silent = await engineOf([], { model: { stream } });
		const stopped = await run(silent.engine, requestOf("x"), { abortOn: ({ type }) => type === "text" });
		expect(shown(stopped.events)).toEqual(["message", "text Half"]);
	});

	test("R2-93: does not count as a failure of the model in the execution log", async () => {
		const stream = async function* ({ signal }: ModelRequest) {
			yield delta("Half");
			await new Promise((resolve) => signal.addEventListener("abort", resolve));
			yield* refusal("stopped");
		};
		const { engine } = await engineOf([], { model: { stream } });
		const { events } = await run(engine, requestOf("x"), { abortOn: ({ type }) => type === "text" });
		const logged = events.flatMap((event) => (event.type === "log" ? [event.entry.text] : []));
		expect(logged).toEqual([expect.stringMatching(/^p\/m was stopped after/)]);
	});

	test("before the start yields nothing", async () => {
		const { engine, calls } = await engineOf([answer(text("Hi."))]);
		expect(await collect(engine.run(requestOf("x"), { signal: AbortSignal.abort() }))).toEqual([]);
		expect(calls).toEqual([]);
	});
});

describe("what people see of a long tool", () => {
	test("R2-129: the estimate is the median of recent times; below the default no notice is shown", () => {
		const known = durations(1000);
		expect([known.usualMs("a"), known.noticeMs("a")]).toEqual([1000, 1000]);
		for (const ms of [5000, 3, 2000]) known.add("a", ms);
		known.add("b", 2);
		expect([known.usualMs("a"), known.noticeMs("a")]).toEqual([2000, 2000]);
		expect([known.usualMs("b"), known.noticeMs("b")]).toEqual([2, 1000]);
	});

	test("R2-95, R2-96, A22: progress keeps a gap, and one that takes longer than usual says how long it usually takes", async () => {
		const patient = toolOf("patient", {
			async execute(_args, { progress }) {
				for (const n of [1, 2, 3]) progress(`step ${n}`);
				return textResult("");
			},
		});
		const { events } = await play([answer(asks("patient")), answer()], { tools: [patient] });
		const progress = events.filter((event) => event.type === "tool" && event.status === "progress");
		expect(progress).toMatchObject([{ summary: "step 1" }]);
		const { promise, resolve } = Promise.withResolvers<void>();
		const slow = toolOf("slow", {
			async execute() {
				await promise;
				return textResult("");
			},
		});
		const { engine } = await engineOf([answer(asks("slow")), answer()], {
			tools: [slow],
			config: { toolDurationMs: 1 },
		});
		const ran = await run(engine, requestOf("x"), {
			abortOn: (event) => {
				if (event.type === "tool" && event.status === "progress") resolve();
				return false;
			},
		});
		expect(ran.events).toContainEqual(
			expect.objectContaining({ status: "progress", summary: "🛠️ Using slow (usually about 1 ms)" }),
		);
	});
});
