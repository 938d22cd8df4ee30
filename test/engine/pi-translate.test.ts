import { type AssistantMessage, fauxAssistantMessage, fauxToolCall } from "@earendil-works/pi-ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callSummary, progressSummary, resultSummary } from "../../packages/daemon/src/engine/kit/calls.ts";
import { EventQueue, modelFailure } from "../../packages/daemon/src/engine/kit/kit.ts";
import { type PiEvent, Translator } from "../../packages/daemon/src/engine/pi/translate.ts";
import type { EngineEvent, EngineYield } from "../../packages/protocol/src/engine.ts";
import { expectPaired, said, toolsOf } from "./pi-kit.ts";

function translator() {
	const one = new Translator("account");
	return { event: one.event.bind(one), finish: one.finish.bind(one) };
}

const start = (toolCallId: string): PiEvent => ({ type: "tool_execution_start", toolCallId, toolName: "t", args: {} });
const update = (toolCallId: string): PiEvent => ({
	type: "tool_execution_update",
	toolCallId,
	toolName: "t",
	args: {},
	partialResult: said("half"),
});
const end = (toolCallId: string, isError: boolean): PiEvent => ({
	type: "tool_execution_end",
	toolCallId,
	toolName: "t",
	result: said("done"),
	isError,
});
const asks = (...ids: string[]): PiEvent => ({
	type: "message_end",
	message: fauxAssistantMessage(
		ids.map((id) => fauxToolCall("t", {}, { id })),
		{ stopReason: "toolUse" },
	),
});

describe("tool calls", () => {
	test("I12: whatever pi sends or leaves out, every call starts once and ends once", () => {
		const id = fc.constantFrom("a", "b", "");
		const event = fc.oneof(
			id.map(start),
			id.map(update),
			fc.tuple(id, fc.boolean()).map(([call, failed]) => end(call, failed)),
			fc.array(id, { maxLength: 3 }).map((ids) => asks(...ids)),
		);
		fc.assert(
			fc.property(fc.array(event), (events) => {
				const { event: translate, finish } = translator();
				expectPaired([...events.flatMap(translate), ...finish("over")]);
			}),
		);
	});

	test("calls that were asked for and never started are started and failed", () => {
		const { event, finish } = translator();
		const events = [asks("a", "b"), start("a"), end("a", false)].flatMap(event);
		expect(toolsOf([...events, ...finish("stopped")]).map(({ callId, status }) => `${callId} ${status}`)).toEqual([
			"a started",
			"a completed",
			"b started",
			"b failed",
		]);
	});

	test("calls in a message that was cut off were never made", () => {
		const { event, finish } = translator();
		const message = fauxAssistantMessage(fauxToolCall("t", {}, { id: "a" }), { stopReason: "aborted" });
		expect(toolsOf([event({ type: "message_end", message }), finish("stopped")].flat())).toEqual([]);
	});

	test("an id that a model uses again is a new call", () => {
		const { event, finish } = translator();
		const round = () => [asks("call_0"), start("call_0"), end("call_0", false)].flatMap(event);
		const ids = toolsOf([...round(), ...round(), ...finish("over")]).map(({ callId }) => callId);
		expect(ids).toEqual(["call_0", "call_0", "call_0.2", "call_0.2"]);
	});

	test("events hold copies: pi keeps changing its own objects", () => {
		const { event } = translator();
		const args = { path: "a" };
		const [started] = toolsOf([event({ type: "tool_execution_start", toolCallId: "1", toolName: "t", args })].flat());
		args.path = "changed";
		expect(started).toMatchObject({ args: { path: "a" }, summary: "t a" });
	});

	test("progress is said once per change", () => {
		const { event } = translator();
		const events = [start("a"), update("a"), update("a"), update("unknown")].flatMap(event);
		expect(toolsOf(events).map(({ status }) => status)).toEqual(["started", "progress"]);
	});
});

describe("messages, compaction and usage", () => {
	const message = (usage: Partial<AssistantMessage["usage"]>, more: Partial<AssistantMessage> = {}): PiEvent => {
		const base = fauxAssistantMessage("x");
		return { type: "message_end", message: { ...base, usage: { ...base.usage, ...usage }, ...more } };
	};
	const usage = (...events: PiEvent[]) => {
		const { event, finish } = translator();
		events.flatMap(event);
		return finish("over").at(-1);
	};
	const UNKNOWN = { type: "usage", input: -1, output: -1, cache_read: -1, cache_write: -1 };

	test("usage is the sum over model calls, with the model of the last one that answered", () => {
		expect(
			usage(
				message({ input: 10, output: 2, cacheRead: 5 }, { model: "small" }),
				message({ input: 20, output: 3, cacheWrite: 7 }, { model: "large" }),
				message({}, { model: "refused", stopReason: "error", content: [] }),
			),
		).toEqual({
			type: "usage",
			input: 30,
			output: 5,
			cache_read: 5,
			cache_write: 7,
			model: "large",
		});
	});

	test("missing usage is -1, and makes the sum unknown", () => {
		expect(usage()).toEqual(UNKNOWN);
		expect(usage(message({}))).toMatchObject(UNKNOWN);
		expect(usage(message({ input: 10, output: 2 }), message({}))).toMatchObject(UNKNOWN);
		expect(usage(message({ input: 10, cacheRead: 4 }))).toMatchObject({ input: 10, output: -1, cache_read: 4 });
		expect(usage(message({ output: 2 }))).toMatchObject({ ...UNKNOWN, output: 2 });
	});

	test("a refused call has used nothing", () => {
		const refused = message({}, { stopReason: "error", content: [] });
		expect(usage(message({ input: 10, output: 2 }), refused)).toMatchObject({ input: 10, output: 2 });
	});

	test("a message without anything to show does not begin", () => {
		const { event } = translator();
		const begin: PiEvent = { type: "message_start", message: fauxAssistantMessage("") };
		expect([begin, message({}, { stopReason: "error", content: [] })].flatMap(event)).toEqual([]);
	});

	test("P1.14: what a server does not stream is said with the finished message, and nothing twice", () => {
		const whole = fauxAssistantMessage("Hello world");
		const delta = (text: string): PiEvent => ({
			type: "message_update",
			message: whole,
			assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: text, partial: whole },
		});
		const begin: PiEvent = { type: "message_start", message: whole };
		const over: PiEvent = { type: "message_end", message: whole };
		const heard = (...events: PiEvent[]) => {
			const { event } = translator();
			return events.flatMap(event).flatMap((event) => (event.type === "text" ? [event.delta] : []));
		};
		expect(heard(begin, over)).toEqual(["Hello world"]);
		expect(heard(begin, delta("Hello"), over)).toEqual(["Hello", " world"]);
		expect(heard(begin, delta("Hello "), delta("world"), over, over)).toEqual(["Hello ", "world"]);
		expect(heard(begin, delta("Another beginning"), over)).toEqual(["Another beginning"]);
	});

	test("a model that writes a long tool call is not silent, and nothing of it is shown", () => {
		const { event } = translator();
		const partial = fauxAssistantMessage("");
		const writing = { type: "toolcall_delta" as const, contentIndex: 0, delta: "{", partial };
		expect(event({ type: "message_update", message: partial, assistantMessageEvent: writing })).toEqual({
			type: "text",
			delta: "",
		});
	});

	test("a compaction that an abort cuts is ended", () => {
		const { event, finish } = translator();
		const begun = event({ type: "compaction_start", reason: "threshold" });
		expect([begun, finish("stopped")].flat().slice(0, 2)).toEqual([
			{ type: "compaction", phase: "start" },
			{ type: "compaction", phase: "end" },
		]);
	});
});

describe("queue", () => {
	const text = (delta: string): EngineEvent => ({ type: "text", delta });
	const all = async (queue: EventQueue, seen: EngineYield[] = []) => {
		for (let step = await queue.next(); !step.done; step = await queue.next()) seen.push(step.value);
		return seen;
	};

	test("I6: a slow reader gets all text in order, in a bounded number of pieces", async () => {
		const queue = new EventQueue(3);
		for (let n = 0; n < 1000; n++) queue.push([text(`${n} `)]);
		queue.push([{ type: "message" }, text("end")]);
		queue.close();
		const events = (await all(queue)).flat();
		expect(events).toHaveLength(5);
		const joined = events.map((event) => (event.type === "text" ? event.delta : "|")).join("");
		expect(joined).toBe(`${Array.from({ length: 1000 }, (_, n) => `${n} `).join("")}|end`);
	});

	test("delivers what came before a failure, then throws it", async () => {
		const queue = new EventQueue();
		queue.push([text("a")]);
		queue.fail(new Error("broken"));
		queue.push([text("late")]);
		const seen: EngineYield[] = [];
		await expect(all(queue, seen)).rejects.toThrow("broken");
		expect(seen).toEqual([text("a")]);
		expect(await queue.next()).toEqual({ done: true, value: undefined });
	});

	test("everything pushed since the last read is one burst; a single event is not an array", async () => {
		const queue = new EventQueue();
		const reading = all(queue);
		for (const delta of ["a", "b", "c"]) {
			queue.push(text(delta));
			await Promise.resolve();
		}
		await new Promise((resolve) => setImmediate(resolve));
		queue.push([]);
		queue.push([text("d")]);
		await new Promise((resolve) => setImmediate(resolve));
		queue.push([text("e"), { type: "message" }]);
		queue.close();
		expect(await reading).toEqual([[text("a"), text("b"), text("c")], text("d"), [text("e"), { type: "message" }]]);
	});

	test("words of two agents stay apart however far the reader is behind", async () => {
		const queue = new EventQueue(1);
		queue.push(["a", "b", "b"].map((agent) => ({ ...text(agent), agent })));
		expect((await queue.next()).value).toEqual([
			{ type: "text", delta: "a", agent: "a" },
			{ type: "text", delta: "bb", agent: "b" },
		]);
	});

	test("leaves the events it was given as they are", async () => {
		const queue = new EventQueue(2);
		const events = ["a", "b", "c"].map(text);
		queue.push(events);
		queue.close();
		expect(await all(queue)).toEqual([[text("a"), text("bc")]]);
		expect(events).toEqual(["a", "b", "c"].map(text));
	});

	test("wakes a reader that waits", async () => {
		const queue = new EventQueue();
		const reading = all(queue);
		await Promise.resolve();
		queue.push([text("a")]);
		await Promise.resolve();
		queue.close();
		queue.fail(new Error("too late to matter"));
		expect(await reading).toEqual([text("a")]);
	});
});

describe("words", () => {
	test.each([
		["read_file", { path: "a/b.md", limit: 3 }, "read_file a/b.md"],
		["bash", { timeout: 5, command: "ls\n-la" }, "bash ls -la"],
		["other", { nested: {}, title: "x" }, "other x"],
		["none", {}, "none"],
		["odd", undefined, "odd"],
	])("%s is summed up", (name, args, summary) => {
		expect(callSummary(name, args)).toBe(summary);
	});

	test("a summary is one line, cut between whole characters", () => {
		const summary = resultSummary(`\n${"👩‍🚀".repeat(200)}\nmore`);
		expect(summary).toBe(`${"👩‍🚀".repeat(119)}…`);
		expect(progressSummary("first\nlast\n")).toBe("last");
		expect(progressSummary(" \n")).toBeUndefined();
		expect(resultSummary("")).toBe("no output");
	});

	test.each([
		["429: slow down", /limits the rate.*429/],
		["401 Incorrect API key", /refuses the key: check OPENAI_API_KEY/],
		["404 model `x` does not exist", /does not know the model "m"/],
		["Stream ended without finish_reason", /cut off/],
		["fetch failed", /cannot be reached/],
		["529 overloaded", /has a problem/],
		["something else", /openai failed\. openai\/m said: something else/],
	])("%s becomes advice", (words, message) => {
		const failure = modelFailure(words, {
			provider: "openai",
			model: "m",
			keySource: "OPENAI_API_KEY",
			section: "pi",
			apiKey: "none",
		});
		expect(failure).toMatchObject({ code: "engine_failed", message: expect.stringMatching(message) });
	});

	test("a key is never repeated", () => {
		const context = { provider: "openai", model: "m", keySource: "K", section: "pi", apiKey: "sk-very-secret" };
		expect(modelFailure("401 bad key sk-very-secret", context).message).not.toContain("sk-very-secret");
	});
});
