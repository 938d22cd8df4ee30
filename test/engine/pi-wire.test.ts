import type { ServerResponse } from "node:http";
import { LLMock } from "@copilotkit/aimock";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { chooseModel, type PiConfig } from "../../packages/daemon/src/engine/pi/config.ts";
import { loadModel } from "../../packages/daemon/src/engine/pi/model.ts";
import {
	builtInTools,
	createPiEngine,
	PI_LIMITS,
	type PiLimits,
	piEngine,
} from "../../packages/daemon/src/engine/pi/pi.ts";
import type { Engine } from "../../packages/protocol/src/engine.ts";
import { serving } from "../serving.ts";
import {
	ask,
	expectPaired,
	NO_RETRY,
	ranWell,
	reasoningOf,
	run,
	shape,
	stopMock,
	textOf,
	toolsOf,
	usageOf,
} from "./pi-kit.ts";

type Make = (origin: string, limits?: PiLimits, more?: PiConfig) => Promise<Engine>;

/** OpenAI's own wire has no other address in our configuration, so its model is moved by hand. */
const responses: Make = async (origin, limits = NO_RETRY, config = {}) => {
	const choice = chooseModel({ provider: "openai", ...config }, { OPENAI_API_KEY: "test-key" });
	const loaded = await loadModel(choice, config.thinking);
	const moved = { ...loaded, model: { ...loaded.model, baseUrl: `${origin}/v1` } };
	return piEngine({
		loaded: moved,
		failure: { ...choice, section: "pi" },
		tools: builtInTools({ now: Date.now }),
		config,
		limits,
	});
};

const completions: Make = (origin, limits = NO_RETRY, more = {}) =>
	createPiEngine(
		{ provider: "ollama", model: "qwen", baseUrl: `${origin}/v1`, apiKeyEnv: "LOCAL_KEY", ...more },
		{ LOCAL_KEY: "test-key" },
		limits,
	);

const anthropic: Make = (origin, limits = NO_RETRY, more = {}) =>
	createPiEngine({ provider: "anthropic", baseUrl: origin, ...more }, { ANTHROPIC_API_KEY: "test-key" }, limits);

const google: Make = (origin, limits = NO_RETRY, more = {}) =>
	createPiEngine({ provider: "google", baseUrl: `${origin}/v1beta`, ...more }, { GEMINI_API_KEY: "test-key" }, limits);

describe.each<[string, Make]>([
	["OpenAI-compatible", completions],
	["OpenAI responses", responses],
	["Anthropic", anthropic],
	["Google", google],
])("%s wire", (wire, make) => {
	let mock: LLMock;
	let engine: Engine;

	beforeAll(async () => {
		mock = await LLMock.create({ port: 0, host: "127.0.0.1", chunkSize: 8 });
		engine = await make(mock.url);
	});
	afterEach(() => {
		mock.reset();
	});
	afterAll(() => stopMock(mock));

	test("text, a tool turn and a second message", async () => {
		mock.on(
			{ userMessage: "what time", hasToolResult: false },
			{
				content: "Let me look that up.",
				toolCalls: [{ name: "time", arguments: '{"zone":"Asia/Tokyo"}', id: "call_1" }],
				// Gemini itself ends a tool turn with STOP; aimock would not.
				finishReason: wire === "Google" ? "stop" : undefined,
			},
		);
		mock.on({ userMessage: "what time", hasToolResult: true }, { content: "It is late in Tokyo." });
		const { events } = await ranWell(engine, ask("what time is it in Tokyo?"));
		expect(shape(events)).toBe("message text time:started time:completed message text usage");
		expect(textOf(events)).toBe("Let me look that up.It is late in Tokyo.");
		expect(toolsOf(events)[0]).toMatchObject({ args: { zone: "Asia/Tokyo" }, summary: "time Asia/Tokyo" });
		expect(toolsOf(events)[1]).toMatchObject({ result: expect.stringMatching(/\+09:00.*Asia\/Tokyo/) });
		expectPaired(events);
		const [usage] = usageOf(events);
		expect(usage).toMatchObject({ input: expect.any(Number), output: expect.any(Number) });
	});

	test("earlier tool calls are context that the provider accepts", async () => {
		mock.onMessage("and now", { content: "Still noon." });
		const toolCalls = [
			{ callId: "call_x|fc_y", name: "time", args: {}, status: "completed" as const, result: "noon-result" },
		];
		const messages = [
			{ role: "user" as const, text: "when?" },
			{ role: "assistant" as const, text: "Looking.", toolCalls },
			{ role: "assistant" as const, text: "Noon." },
			{ role: "user" as const, text: "and now?" },
		];
		const { events } = await ranWell(engine, ask("", { messages }));
		expect(textOf(events)).toBe("Still noon.");
		const sent = JSON.stringify(mock.getLastRequest()?.body);
		expect(sent).toMatch(/when\?.*Looking\..*noon-result.*Noon\..*and now\?/);
	});

	test("a cut in mid-stream keeps the partial text and fails", async () => {
		mock.onMessage(
			"cut",
			{ content: `one ${"two three ".repeat(20)} the end` },
			{ truncateAfterChunks: 8, streamingProfile: { ttft: 0, tps: 100 } },
		);
		const { events, error } = await run(engine, ask("cut"));
		expect(textOf(events)).toMatch(/^one/);
		expect(textOf(events)).not.toContain("the end");
		expect(error).toMatchObject({ code: "engine_failed" });
		expect(usageOf(events)).toHaveLength(1);
	});

	test("the provider does not learn the session's label", async () => {
		mock.onMessage("hi", { content: "hello" });
		expect((await run(engine, ask("hi", { session: "alice@example.org" }))).error).toBeUndefined();
		expect(JSON.stringify(mock.getLastRequest())).not.toContain("alice");
	});

	test("429 says what to do", async () => {
		mock.onMessage("hi", {
			error: { message: "Rate limit reached for requests", type: "rate_limit_error" },
			status: 429,
		});
		const { events, error } = await run(engine, ask("hi"));
		expect(error).toMatchObject({
			code: "engine_failed",
			message: expect.stringMatching(/limits the rate.*wait and send again/),
		});
		expect(shape(events)).toBe("usage");
		expect(mock.getRequests()).toHaveLength(1);
	});

	test("abort during text is prompt", async () => {
		// All of it would take longer than the test may.
		mock.onMessage("long", { content: "word ".repeat(500) }, { streamingProfile: { ttft: 0, tps: 2 } });
		const ran = await ranWell(engine, ask("long"), { abortOn: (event) => event.type === "text" });
		expect(textOf(ran.events)).toMatch(/^word/);
		expect(textOf(ran.events).length).toBeLessThan(1_000);
	});

	test("a wrong key is said without repeating it", async () => {
		mock.onMessage("hi", {
			error: { message: "Incorrect API key: test-key", type: "authentication_error" },
			status: 401,
		});
		const { error } = await run(engine, ask("hi"));
		expect(error).toMatchObject({ message: expect.stringMatching(/refuses the key: check/) });
		expect(String(error)).not.toContain("test-key");
	});
});

describe("retries and reasoning", () => {
	let mock: LLMock;
	beforeAll(async () => {
		mock = await LLMock.create({ port: 0, host: "127.0.0.1" });
	});
	afterEach(() => {
		mock.reset();
	});
	afterAll(() => stopMock(mock));

	test("an image reaches the model", async () => {
		const engine = await completions(mock.url);
		mock.onMessage("look", { content: "A dot." });
		const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
		await ranWell(engine, ask("look", { attachments: [{ name: "dot.png", contentType: "image/png", data }] }));
		expect(JSON.stringify(mock.getLastRequest()?.body)).toContain(data);
	});

	test("a refused call is tried again twice", async () => {
		const engine = await completions(mock.url, PI_LIMITS);
		mock.onMessage("hi", { error: { message: "slow down" }, status: 429, retryAfter: 0 });
		const { error } = await run(engine, ask("hi"));
		expect(error).toMatchObject({ code: "engine_failed" });
		expect(mock.getRequests()).toHaveLength(3);
	});

	test("a retry that works is not visible", async () => {
		const engine = await completions(mock.url, { ...PI_LIMITS, retriesMax: 1 });
		mock.onMessage("hi", { content: "hello" }).nextRequestError(503, { message: "warming up" });
		const { events } = await ranWell(engine, ask("hi"));
		expect(shape(events)).toBe("message text usage");
	});

	test("a provider that asks for a long pause is an error at once", async () => {
		const engine = await completions(mock.url, { ...PI_LIMITS, retriesMax: 2, retryDelayMsMax: 500 });
		mock.onMessage("hi", { error: { message: "slow down" }, status: 429, retryAfter: 60 });
		const { error } = await run(engine, ask("hi"));
		expect(error).toMatchObject({ code: "engine_failed" });
		expect(mock.getRequests()).toHaveLength(1);
	});

	test.each<[string, Make]>([
		["OpenAI-compatible", completions],
		["Anthropic", anthropic],
	])("reasoning is a separate lane (%s)", async (_name, make) => {
		const engine = await make(mock.url, NO_RETRY, { thinking: "low" });
		mock.onMessage("think", { reasoning: "First I weigh it.", content: "Then I answer." });
		const { events } = await ranWell(engine, ask("think"));
		expect(shape(events)).toBe("message reasoning text usage");
		expect(reasoningOf(events)).toBe("First I weigh it.");
		expect(textOf(events)).toBe("Then I answer.");
	});
});

describe("an unusual endpoint", () => {
	let answer: (response: ServerResponse) => void;
	let engine: Engine;

	const chunk = (delta: object, finish_reason: string | null = null) =>
		`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

	beforeEach(async () => {
		const origin = await serving((request, response) => {
			// A connection that is broken before it was read to its end may take along what was written to it.
			request.resume().on("end", () => {
				response.writeHead(200, { "content-type": "text/event-stream" });
				answer(response);
			});
		});
		engine = await completions(origin);
	});

	test("missing usage is -1", async () => {
		answer = (response) => response.end(`${chunk({ content: "hi" })}${chunk({}, "stop")}data: [DONE]\n\n`);
		const { events } = await ranWell(engine, ask("hi"));
		expect(usageOf(events)).toEqual([
			{ type: "usage", input: -1, output: -1, cache_read: -1, cache_write: -1, model: "qwen" },
		]);
	});

	test("a stream that falls silent ends promptly on abort, partial kept", async () => {
		answer = (response) => response.write(chunk({ content: "so far" }));
		const ran = await ranWell(engine, ask("hi"), { abortOn: (event) => event.type === "text" });
		expect(textOf(ran.events)).toBe("so far");
	});

	test("a stream that never says anything ends promptly on abort", async () => {
		const stop = new AbortController();
		answer = (response) => {
			response.flushHeaders();
			setTimeout(() => stop.abort(), 200);
		};
		const ran = await ranWell(engine, ask("hi"), { signal: stop.signal });
		expect(shape(ran.events)).toBe("usage");
	});

	test("a connection that breaks after text keeps it and says so", async () => {
		answer = (response) => {
			response.write(chunk({ content: "so far" }), () => response.socket?.destroy());
		};
		const { events, error } = await run(engine, ask("hi"));
		expect(textOf(events)).toBe("so far");
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringMatching(/cut off/) });
	});

	test("text is out before the tool call behind it, although text_end comes last", async () => {
		const call = { index: 0, id: "", type: "function", function: { name: "time", arguments: "{}" } };
		let turn = 0;
		answer = (response) => {
			turn += 1;
			const first = `${chunk({ content: "Looking." })}${chunk({ tool_calls: [call] })}${chunk({}, "tool_calls")}`;
			response.end(`${turn === 1 ? first : `${chunk({ content: "Done." })}${chunk({}, "stop")}`}data: [DONE]\n\n`);
		};
		const { events } = await ranWell(engine, ask("hi"));
		expect(shape(events)).toBe("message text time:started time:completed message text usage");
		expect(toolsOf(events)[0]?.callId).toBe("time");
	});

	test("two tool calls of one message with one id are two calls, each with its name", async () => {
		const named = (index: number, name: string) => ({
			index,
			id: "c",
			type: "function",
			function: { name, arguments: "" },
		});
		const args = (index: number) => ({ index, function: { arguments: "{}" } });
		let turn = 0;
		answer = (response) => {
			turn += 1;
			const calls = [named(0, "time"), args(0), named(1, "time"), args(1)].map((call) => chunk({ tool_calls: [call] }));
			const last = `${chunk({ content: "Done." })}${chunk({}, "stop")}`;
			response.end(`${turn === 1 ? `${calls.join("")}${chunk({}, "tool_calls")}` : last}data: [DONE]\n\n`);
		};
		const { events } = await ranWell(engine, ask("hi"));
		const tools = toolsOf(events);
		expect(new Set(tools.map(({ callId }) => callId)).size).toBe(2);
		expect(tools.map(({ name }) => name)).toEqual(["time", "time", "time", "time"]);
		expect(tools.filter(({ status }) => status === "completed")).toHaveLength(2);
	});

	test("a refused connection is reported as such", async () => {
		const engine = await completions("http://127.0.0.1:1");
		const { error } = await run(engine, ask("hi"));
		expect(error).toMatchObject({
			code: "engine_failed",
			message: expect.stringMatching(/cannot be reached.*pi\.baseUrl/),
		});
	});
});
