/** From what pi reports, through a turn, back to what pi sends: a model gets its own reasoning and its tools' pictures again. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { LLMock } from "@copilotkit/aimock";
import {
	type AssistantMessage,
	fauxAssistantMessage,
	fauxText,
	fauxToolCall,
	type Message,
	type ThinkingContent,
} from "@earendil-works/pi-ai";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { assembleContext, pastTurnOf, userMessage } from "../../packages/daemon/src/broker/context.ts";
import { COMPLETED } from "../../packages/daemon/src/broker/ending.ts";
import { Framer } from "../../packages/daemon/src/broker/frames/framer.ts";
import { Transcript } from "../../packages/daemon/src/broker/frames/transcript.ts";
import { BROKER_LIMITS } from "../../packages/daemon/src/broker/port.ts";
import { chooseModel, type PiConfig } from "../../packages/daemon/src/engine/pi/config.ts";
import { toPiContext } from "../../packages/daemon/src/engine/pi/messages.ts";
import { loadModel } from "../../packages/daemon/src/engine/pi/model.ts";
import { piEngine } from "../../packages/daemon/src/engine/pi/pi.ts";
import { accountOf } from "../../packages/daemon/src/engine/pi/signature.ts";
import { type PiEvent, Translator } from "../../packages/daemon/src/engine/pi/translate.ts";
import type { EngineEvent } from "../../packages/protocol/src/engine.ts";
import { request } from "../broker/rig.ts";
import { quiet } from "../quiet.ts";
import { serving } from "../serving.ts";
import { storeForTest } from "../store.ts";
import { ask, fauxEngine, NO_RETRY, stopMock, tool } from "./pi-kit.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MODEL = { api: "faux", provider: "faux", model: "faux-1", account: "one" };

const thinking = (text: string, more: Partial<ThinkingContent> = {}): ThinkingContent => ({
	type: "thinking",
	thinking: text,
	thinkingSignature: `sig of ${text}`,
	...more,
});
const photo = { content: [{ type: "image" as const, mimeType: "image/png", data: PIXEL }], details: undefined };
const camera = tool("camera", async () => photo);

/** The turn that a run's events become, as the next run's context tells it to pi. */
function replayed(events: readonly EngineEvent[], model: typeof MODEL | "nobody" = MODEL): Message[] {
	const framer = new Framer({ runId: "run_1", session: "main", ...BROKER_LIMITS });
	const transcript = new Transcript({
		runId: "run_1",
		session: "main",
		engine: "pi",
		startedAt: 0,
		userMessages: [],
		...BROKER_LIMITS,
	});
	framer.streams.attach(() => {});
	framer.open(0);
	for (const event of events) transcript.take(framer.take(event, 0), framer.text, 0);
	const turn = JSON.parse(JSON.stringify(transcript.turn(COMPLETED, 0)));
	const messages = assembleContext([pastTurnOf(turn)], [userMessage({ text: "next" })]);
	return toPiContext(ask("", { messages }), 0, model === "nobody" ? undefined : model).history;
}

/** The events of a run as pi reports them: each round is a message of the model, then its tools. */
function reported(rounds: readonly AssistantMessage["content"][]): EngineEvent[] {
	const translate = new Translator(MODEL.account);
	const events = rounds.flatMap((content): PiEvent[] => {
		const calls = content.filter((part) => part.type === "toolCall");
		const stopReason = calls.length > 0 ? "toolUse" : "stop";
		const message: AssistantMessage = { ...fauxAssistantMessage(content, { stopReason }), ...MODEL };
		return [
			{ type: "message_start", message },
			{ type: "message_end", message },
			...calls.flatMap(({ id: toolCallId, name: toolName, arguments: args }): PiEvent[] => [
				{ type: "tool_execution_start", toolCallId, toolName, args },
				{ type: "tool_execution_end", toolCallId, toolName, result: photo, isError: false },
			]),
		];
	});
	return [...events.flatMap((event) => translate.event(event)), ...translate.finish("over")];
}

/** Without the ids, which are ours in a later turn. */
const contents = (messages: readonly Message[]) =>
	messages.flatMap((message): { role: string; content: unknown }[] => {
		if (message.role === "user") return [];
		if (message.role === "toolResult") return [{ role: message.role, content: message.content }];
		const content = (message as AssistantMessage).content;
		return [{ role: message.role, content: content.map((part) => (part.type === "toolCall" ? part.name : part)) }];
	});

describe("round trip", () => {
	const word = fc.string({ minLength: 1, maxLength: 8 }).map((text) => text.toWellFormed());
	const thought = fc.oneof(
		word.map((text) => thinking(text)),
		fc.constant(thinking("", { redacted: true, thinkingSignature: "secret" })),
	);
	/** Two pieces of text in a row are one to everybody. */
	const said = fc
		.array(fc.oneof(thought, word.map(fauxText)), { minLength: 1, maxLength: 5 })
		.map((parts) => parts.filter((part, n) => part.type !== "text" || parts[n - 1]?.type !== "text"));
	const called = fc
		.tuple(said, fc.integer({ min: 1, max: 3 }))
		.map(([parts, calls]) => [...parts, ...Array.from({ length: calls }, () => fauxToolCall("camera", {}))]);
	const answered = fc
		.tuple(said, word)
		.map(([parts, text]) => (parts.at(-1)?.type === "text" ? parts : [...parts, fauxText(text)]));

	test("what the model thought, said, asked for and saw comes back in the same order, call by call", () => {
		fc.assert(
			fc.property(fc.array(called, { maxLength: 4 }), answered, (rounds, last) => {
				const all = [...rounds, last];
				const expected = all.flatMap((content) => [
					{ role: "assistant", content: content.map((part) => (part.type === "toolCall" ? part.name : part)) },
					...content
						.filter((part) => part.type === "toolCall")
						.map(() => ({ role: "toolResult", content: photo.content })),
				]);
				expect(contents(replayed(reported(all)))).toEqual(expected);
			}),
		);
	});

	test("calls that follow each other without a word count as made together", () => {
		const call = fauxToolCall("camera", {});
		const told = contents(replayed(reported([[call], [call, call], [fauxText("Three.")]])));
		expect(told.map(({ role }) => role)).toEqual([
			...["assistant", "toolResult", "toolResult", "toolResult", "assistant"],
		]);
		expect(told[0]!.content).toEqual(["camera", "camera", "camera"]);
	});

	const rounds = [
		[thinking("look"), fauxToolCall("camera", {})],
		[thinking("sure"), fauxText("A cat.")],
	];

	test("only messages that the model signed count as its own", () => {
		const [first, , last] = replayed(reported([...rounds, [fauxText("More.")]])) as AssistantMessage[];
		const { account: _, ...own } = MODEL;
		expect([first, last]).toMatchObject([own, own]);
		const [unsigned] = replayed(reported([[fauxText("Hi.")]])) as AssistantMessage[];
		expect(unsigned).toMatchObject({ provider: "nexus" });
	});

	test.each<[string, typeof MODEL | "nobody"]>([
		["another model", { ...MODEL, model: "faux-2" }],
		["another provider", { ...MODEL, provider: "else" }],
		["the same model with another key", { ...MODEL, account: "two" }],
		["a model that does not think", "nobody"],
	])("%s is not given what it did not sign", (_, model) => {
		const told = replayed(reported(rounds), model);
		expect(JSON.stringify(told)).not.toContain("thinking");
		expect(contents(told)).toMatchObject([
			{ content: ["camera"] },
			{ role: "toolResult" },
			{ content: [{ text: "A cat." }] },
		]);
	});

	test("an account differs by key and does not contain it", () => {
		expect(accountOf("sk-secret")).toMatch(/^[0-9a-f]{16}$/);
		expect(accountOf("sk-secret")).not.toBe(accountOf("sk-other"));
	});

	test("an answer that was cut off, a field's name and another engine's signature are no signatures", () => {
		const translate = new Translator(MODEL.account);
		const cut = { ...fauxAssistantMessage([thinking("half")], { stopReason: "aborted" }), ...MODEL };
		expect(translate.event({ type: "message_end", message: cut })).toEqual([]);
		const field = thinking("local", { thinkingSignature: "reasoning_content" });
		expect(JSON.stringify(reported([[field, fauxText("Hi.")]]))).not.toContain("signed_reasoning");
		for (const signature of ["not JSON", "null", "5", '{"api":"faux"}']) {
			const foreign: EngineEvent = { type: "signed_reasoning", text: "x", signature };
			expect(contents(replayed([foreign, { type: "text", delta: "Hi." }]))).toEqual([
				{ role: "assistant", content: [fauxText("Hi.")] },
			]);
		}
	});
});

describe("what a tool answered", () => {
	const resultOf = (...content: NonNullable<Extract<EngineEvent, { type: "tool" }>["content"]>) => {
		const call = { callId: "c", name: "t", args: {}, status: "completed" as const, result: "plain", content };
		const messages = [
			{ role: "assistant" as const, text: "", toolCalls: [call] },
			{ role: "user" as const, text: "next" },
		];
		const { history } = toPiContext(ask("", { messages }), 0);
		return (history[1] as Extract<Message, { role: "toolResult" }>).content;
	};

	test("is text and pictures to a model; a resource is one of them or is named", () => {
		const image = { type: "image", mimeType: "image/png", data: PIXEL };
		expect(resultOf({ type: "image", contentType: "image/png", data: PIXEL })).toEqual([image]);
		expect(resultOf({ type: "resource", uri: "file:///a.md", text: "hi" })).toEqual([fauxText("file:///a.md:\nhi")]);
		expect(resultOf({ type: "resource", uri: "a:b", contentType: "image/png", data: PIXEL })).toEqual([
			fauxText("a:b:"),
			image,
		]);
		expect(resultOf({ type: "resource", uri: "a:b", contentType: "audio/mpeg", data: "AAAA" })).toEqual([
			fauxText("[resource a:b audio/mpeg]"),
		]);
		expect(resultOf({ type: "image", contentType: "image/tiff", data: "AAAA" })).toEqual([
			fauxText("[image image/tiff]"),
		]);
		expect(resultOf({ type: "text", text: "" })).toEqual([fauxText("plain")]);
	});
});

describe("a second turn", () => {
	let mock: LLMock;
	beforeAll(async () => {
		mock = await LLMock.create({ port: 0, host: "127.0.0.1" });
	});
	afterEach(() => {
		mock.reset();
	});
	afterAll(() => stopMock(mock));

	/** In front of the mock, which records requests in its own format. */
	async function recorder(target: string) {
		const bodies: string[] = [];
		const pass = async (request: IncomingMessage, response: ServerResponse) => {
			const body = await text(request);
			bodies.push(body);
			const headers = { "content-type": "application/json", "x-api-key": "test-key" };
			const answer = await fetch(`${target}${request.url}`, { method: "POST", headers, body });
			response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
			response.end(await answer.text());
		};
		const url = await serving((request, response) => {
			pass(request, response).catch((cause: unknown) => response.destroy(cause as Error));
		});
		return { url, bodies };
	}

	function brokerOn(engine: Awaited<ReturnType<typeof piEngine>>) {
		const { bus, ledger } = storeForTest();
		return createBroker({ ...quiet, bus, ledger, engine });
	}

	const say = (runId: string, text: string) => request({ runId, events: [{ eventId: runId, text, attachments: [] }] });

	/** The body of the second turn's request, after a first turn with a look through the camera. */
	async function secondRequest(config: PiConfig, env: Record<string, string>, path: string): Promise<unknown> {
		const { url, bodies } = await recorder(mock.url);
		const choice = chooseModel(config, env);
		const loaded = await loadModel(choice, config.thinking);
		const model = { ...loaded.model, baseUrl: `${url}${path}` };
		const failure = { ...choice, section: "pi" };
		const engine = await piEngine({ loaded: { ...loaded, model }, failure, tools: [camera], config, limits: NO_RETRY });
		const look = { content: "", toolCalls: [{ name: "camera", arguments: "{}", id: "call_1" }] };
		mock.on(
			{ userMessage: "what is there", hasToolResult: false },
			{ ...look, reasoning: "I have to look.", reasoningSignature: "c2lnbmF0dXJl" },
		);
		mock.on(
			{ userMessage: "what is there", hasToolResult: true },
			{ content: "A dot.", reasoning: "A single dot.", reasoningSignature: "c2Vjb25k" },
		);
		mock.onMessage("and its colour", { content: "Black." });
		const broker = brokerOn(engine);
		const first = await broker.execute(say("run_1", "what is there?")).result;
		const second = await broker.execute(say("run_2", "and its colour?")).result;
		expect([first, second]).toMatchObject([{ status: "completed" }, { status: "completed" }]);
		return JSON.parse(bodies.at(-1)!);
	}

	test("gives Anthropic the thinking with its signature and the tool's picture", async () => {
		const env = { ANTHROPIC_API_KEY: "test-key" };
		const body = await secondRequest({ provider: "anthropic", thinking: "low" }, env, "");
		const { messages } = body as { messages: { role: string; content: unknown }[] };
		expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "user"]);
		expect(messages[1]!.content).toMatchObject([
			{ type: "thinking", thinking: "I have to look.", signature: "c2lnbmF0dXJl" },
			{ type: "tool_use", name: "camera" },
		]);
		expect(JSON.stringify(messages[2])).toContain(PIXEL);
		expect(messages[3]!.content).toMatchObject([
			{ type: "thinking", thinking: "A single dot.", signature: "c2Vjb25k" },
			{ type: "text", text: "A dot." },
		]);
	});

	test("gives OpenAI each reasoning item before what followed it", async () => {
		const body = await secondRequest({ provider: "openai", thinking: "low" }, { OPENAI_API_KEY: "test-key" }, "/v1");
		const { input } = body as { input: { type?: string; role?: string }[] };
		expect(input.map(({ type, role }) => type ?? role)).toEqual([
			...["developer", "user", "reasoning", "function_call", "function_call_output"],
			...["reasoning", "message", "user"],
		]);
		expect(input[2]).toMatchObject({ encrypted_content: expect.stringMatching(/./) });
		expect(JSON.stringify(input[4])).toContain(PIXEL);
	});

	test("gives any provider the tool's picture, and a model that does not think no thinking", async () => {
		let seen: readonly Message[] = [];
		const { engine } = await fauxEngine(
			[
				fauxAssistantMessage([thinking("look"), fauxToolCall("camera", {}, { id: "a" })], { stopReason: "toolUse" }),
				fauxAssistantMessage("A dot."),
				({ messages }) => {
					seen = messages;
					return fauxAssistantMessage("Black.");
				},
			],
			{ tools: [camera] },
		);
		const broker = brokerOn(engine);
		await broker.execute(say("run_1", "what is there?")).result;
		await broker.execute(say("run_2", "and its colour?")).result;
		expect(seen.find(({ role }) => role === "toolResult")).toMatchObject({ content: photo.content });
		expect(JSON.stringify(seen)).not.toContain("sig of");
	});
});
