import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { LLMock } from "@copilotkit/aimock";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { stopMock } from "../../engine/pi-kit.ts";
import { until } from "../../until.ts";
import { rejectsWith } from "../parts.ts";
import { chat, fakeProvider, messages, PIXEL, refuse } from "./fake-provider.ts";
import { all, ask, KEY, OWNER, open, rig, signal } from "./rig.ts";

async function opened(
	providerType = "openai-compatible",
	path = "/v1",
	fields = {},
	deps: Parameters<typeof rig>[0] = {},
) {
	const fake = await fakeProvider();
	const { connectors } = rig(deps);
	await connectors.create({ id: "c", providerType, endpoint: fake.url + path, apiKey: KEY, ...fields }, OWNER);
	return { fake, connectors, provider: await open(connectors, "c") };
}

const failing = (answer: Parameters<Awaited<ReturnType<typeof fakeProvider>>["on"]>[1]) =>
	opened().then(async ({ fake, provider }) => {
		fake.on("/v1/chat/completions", answer);
		return all(provider.text(ask("hi"), signal())).then(
			() => undefined,
			(cause: unknown) => cause,
		);
	});

describe("connectors: text", () => {
	test("an OpenAI-compatible endpoint streams its words, and its usage at the end", async () => {
		const { fake, provider } = await opened();
		const asked = {
			model: "m1",
			system: "be brief",
			temperature: 0.5,
			maxTokens: 20,
			messages: [
				{ role: "user" as const, text: "one" },
				{ role: "assistant" as const, text: "two" },
				{ role: "user" as const, text: "three" },
			],
		};
		const events = await all(provider.text(asked, signal()));
		expect(events.filter(({ type }) => type !== "alive")).toEqual([
			{ type: "text", delta: "Hel" },
			{ type: "text", delta: "lo " },
			{ type: "text", delta: "there" },
			{ type: "usage", input: 7, output: 3 },
		]);
		const [{ headers, body }] = fake.seen as [(typeof fake.seen)[0]];
		expect(headers.authorization).toBe(`Bearer ${KEY}`);
		const sent = JSON.parse(body.toString()) as { messages: { role: string; content: unknown }[]; temperature: number };
		expect(sent).toMatchObject({ model: "m1", stream: true, temperature: 0.5, max_completion_tokens: 20 });
		expect(sent.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
		expect(JSON.stringify(sent.messages)).toMatch(/be brief.*one.*two.*three/);
	});

	test.each([
		[undefined, { input: -1, output: -1 }],
		[{ prompt_tokens: 7 }, { input: 7, output: -1 }],
		[{ completion_tokens: 3 }, { input: -1, output: 3 }],
		[
			{ prompt_tokens: 7, completion_tokens: 3 },
			{ input: 7, output: 3 },
		],
	])("K-STREAM-003: of %j what is missing is -1, and not 0", async (said, known) => {
		const { fake, provider } = await opened();
		fake.on("/v1/chat/completions", (_, response) => chat(response, ["x"], said));
		expect((await all(provider.text(ask("hi"), signal()))).at(-1)).toEqual({ type: "usage", ...known });
	});

	test.each([
		["nothing", undefined, undefined, { input: -1, output: -1 }],
		["the end alone", undefined, { input_tokens: 4, output_tokens: 2 }, { input: 4, output: 2 }],
		["the beginning alone", { input_tokens: 5 }, undefined, { input: 5, output: -1 }],
	])("K-STREAM-003: an Anthropic stream of which %s tells the usage does not fail", async (_, begun, ended, known) => {
		const { fake, provider } = await opened("anthropic", "/v1");
		fake.on("/v1/messages", (_seen, response) => messages(response, begun, ended));
		const events = await all(provider.text(ask("hi", "claude-x"), signal()));
		expect(events.filter(({ type }) => type !== "alive")).toEqual([
			{ type: "text", delta: "Bonjour" },
			{ type: "usage", ...known },
		]);
	});

	test("K-STREAM-003: a stream that breaks off has the usage that was reported, and -1 for the rest", async () => {
		const { fake, provider } = await opened("anthropic", "/v1");
		fake.on("/v1/messages", (_, response) => {
			response.writeHead(200, { "content-type": "text/event-stream" });
			const message = { id: "m", type: "message", role: "assistant", content: [], usage: { input_tokens: 5 } };
			const start = JSON.stringify({ type: "message_start", message });
			response.write(`event: message_start\ndata: ${start.slice(0, 20)}`);
			setImmediate(() => response.end(`${start.slice(20)}\n\n`));
		});
		const told: object[] = [];
		const reading = (async () => {
			for await (const event of provider.text(ask("hi", "claude-x"), signal())) told.push(event);
		})();
		await expect(reading).rejects.toMatchObject({ reason: "AI_PROVIDER_FAILED" });
		expect(told.at(-1)).toEqual({ type: "usage", input: 5, output: -1 });
	});

	test("Anthropic's own wire, with its own header for the key", async () => {
		const { fake, provider } = await opened("anthropic", "/v1");
		const events = await all(provider.text(ask("hi", "claude-x"), signal()));
		expect(events.filter(({ type }) => type !== "alive")).toEqual([
			{ type: "text", delta: "Bonjour" },
			{ type: "usage", input: 5, output: 2 },
		]);
		const { headers, path } = fake.seen.at(-1)!;
		expect([path, headers["x-api-key"], headers.authorization]).toEqual(["/v1/messages", KEY, undefined]);
	});

	test.each(["openai", "anthropic", "google", "openai-compatible"])(
		"%s, against a fake that others wrote",
		async (type) => {
			const mock = await LLMock.create({ port: 0, host: "127.0.0.1", chunkSize: 4 });
			onTestFinished(() => stopMock(mock));
			mock.onMessage("hello", { content: "Hello from the other fake." });
			const { connectors } = rig();
			await connectors.create({ id: "c", providerType: type, endpoint: `${mock.url}/v1`, apiKey: KEY }, OWNER);
			const events = await all((await open(connectors, "c")).text(ask("hello"), signal()));
			expect(events.map((event) => (event.type === "text" ? event.delta : "")).join("")).toBe(
				"Hello from the other fake.",
			);
			expect(events.filter(({ type }) => type === "text").length).toBeGreaterThan(1);
			expect(events.at(-1)).toMatchObject({ type: "usage" });
		},
	);

	test("nothing of the environment travels to a connector's address", async () => {
		for (const name of ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY"]) vi.stubEnv(name, "of-the-operator");
		vi.stubEnv("OPENAI_CUSTOM_HEADERS", "x-secret: of-the-operator");
		vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:1");
		vi.stubEnv("HTTP_PROXY", "http://127.0.0.1:1");
		onTestFinished(() => void vi.unstubAllEnvs());
		const { fake, provider } = await opened("openai");
		await all(provider.text(ask("hi"), signal()));
		expect(JSON.stringify(fake.seen)).not.toContain("of-the-operator");
		expect(fake.seen.at(-1)!.headers.authorization).toBe(`Bearer ${KEY}`);
	});

	test("a reader that leaves early, and a caller that aborts, end the request", async () => {
		const { fake, provider } = await opened();
		fake.on("/v1/chat/completions", (_, response) => {
			response.writeHead(200, { "content-type": "text/event-stream" });
			response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "on" } }] })}\n\n`);
		});
		for await (const event of provider.text(ask("hi"), signal())) if (event.type === "text") break;
		await until("the first request is closed", () => fake.closed.length === 1);
		const aborting = new AbortController();
		const rest = (async () => {
			for await (const event of provider.text(ask("hi"), aborting.signal)) if (event.type === "text") aborting.abort();
		})();
		await rejectsWith(rest, "aborted");
		await until("the second request is closed", () => fake.closed.length === 2);
	});
});

describe("connectors: failures of a provider", () => {
	test.each([
		[401, "engine_failed", "AI_PROVIDER_FAILED", "refuses the key"],
		[404, "not_found", "AI_MODEL_NOT_FOUND", "does not know the model"],
		[408, "timeout", "AI_PROVIDER_TIMEOUT", "in time"],
		[429, "busy", "AI_PROVIDER_FAILED", "limits the rate"],
		[400, "engine_failed", "AI_PROVIDER_FAILED", "said (400): no good"],
		[503, "engine_failed", "AI_PROVIDER_FAILED", "failed"],
	])("%i is %s (%s)", async (status, code, reason, words) => {
		expect(await failing(refuse(status, "no good"))).toMatchObject({
			code,
			reason,
			message: expect.stringContaining(words),
		});
	});

	test("its words are short and without the key, whole or in part", async () => {
		const said = `wrong key ${KEY} or sk-test-***cdef \u001b[31m${"x".repeat(5000)}`;
		const error = (await failing(refuse(401, said))) as Error;
		expect(error.message).toContain("wrong key [key] or [key]");
		expect(error.message).not.toMatch(/0123456789|cdef|\p{Cc}/u);
		expect(error.message.length).toBeLessThan(700);
	});

	test("a redirect is not followed", async () => {
		const error = await failing(
			(_, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
		);
		expect(error).toMatchObject({ reason: "AI_PROVIDER_FAILED", message: expect.stringContaining("redirect") });
	});

	test("an answer that breaks off is a failure, not an end", async () => {
		const error = await failing((_, response) => {
			response.writeHead(200, { "content-type": "text/event-stream" });
			response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "half" } }] })}\n\n`, () =>
				response.destroy(),
			);
		});
		expect(error).toMatchObject({ code: "engine_failed", reason: "AI_PROVIDER_FAILED" });
	});

	test("no server at the endpoint", async () => {
		const gone = createServer();
		await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
		const { port } = gone.address() as AddressInfo;
		await new Promise((resolve) => gone.close(resolve));
		const { connectors } = rig();
		await connectors.create(
			{ id: "c", providerType: "openai-compatible", endpoint: `http://127.0.0.1:${port}` },
			OWNER,
		);
		const provider = await open(connectors, "c");
		await expect(all(provider.text(ask("hi"), signal()))).rejects.toMatchObject({
			reason: "AI_PROVIDER_FAILED",
			message: expect.stringContaining("ECONNREFUSED"),
		});
	});

	test("an answer without an end is cut at the limit", async () => {
		const { fake, provider } = await opened();
		const block = Buffer.alloc(4 * 1024 * 1024);
		fake.on("/v1/audio/speech", (_, response) => {
			response.writeHead(200, { "content-type": "audio/mpeg" });
			const more = () => {
				while (!response.destroyed && response.write(block));
			};
			response.on("drain", more);
			more();
		});
		const { audio } = await provider.speak({ model: "m", text: "hi" }, signal());
		let bytes = 0;
		const reading = (async () => {
			for await (const part of audio) bytes += part.byteLength;
		})();
		await expect(reading).rejects.toMatchObject({ message: expect.stringContaining("sent more than") });
		expect(bytes).toBeLessThanOrEqual(64 * 1024 * 1024);
	});
});

describe("connectors: speech, pictures, embeddings, transcription", () => {
	test("speech comes as it is made, before it is finished", async () => {
		const { fake, provider } = await opened();
		let finish = () => {};
		fake.on("/v1/audio/speech", (_, response) => {
			response.writeHead(200, { "content-type": "audio/mpeg" });
			response.write("first");
			finish = () => void response.end("second");
		});
		const { mimeType, audio } = await provider.speak({ model: "tts", text: "hello", voice: "nova" }, signal());
		const parts = audio[Symbol.asyncIterator]();
		expect(Buffer.from((await parts.next()).value!).toString()).toBe("first");
		finish();
		expect(Buffer.from((await parts.next()).value!).toString()).toBe("second");
		expect(await parts.next()).toEqual({ done: true, value: undefined });
		expect(mimeType).toBe("audio/mpeg");
		expect(JSON.parse(fake.seen.at(-1)!.body.toString())).toEqual({
			model: "tts",
			input: "hello",
			voice: "nova",
			response_format: "mp3",
		});
		await rejectsWith(provider.speak({ model: "m", text: "x", mimeType: "audio/midi" }, signal()), "invalid");
	});

	test("a picture comes as base64, or from an address that is fetched without the key", async () => {
		const { fake, provider } = await opened();
		const [picture] = await provider.image({ model: "i", prompt: "a boat", size: "64x64", count: 2 }, signal());
		expect(picture).toEqual({ mimeType: "image/png", data: Buffer.from(PIXEL, "base64") });
		expect(JSON.parse(fake.seen.at(-1)!.body.toString())).toEqual({
			model: "i",
			prompt: "a boat",
			size: "64x64",
			n: 2,
		});
		fake.on("/pixel", (_, response) => void response.writeHead(200, { "content-type": "image/webp" }).end("pixel"));
		fake.on(
			"/v1/images/generations",
			(_, response) => void response.end(JSON.stringify({ data: [{ url: `${fake.url}/pixel` }] })),
		);
		const [fetched] = await provider.image({ model: "i", prompt: "a boat" }, signal());
		expect(fetched).toEqual({ mimeType: "image/webp", data: Buffer.from("pixel") });
		expect(fake.seen.at(-1)!.headers.authorization).toBeUndefined();
	});

	test("Z20: downloads from elsewhere are handed to the watcher, and nothing else is", async () => {
		const urls: string[] = [];
		const { fake, provider } = await opened(
			"openai-compatible",
			"/v1",
			{},
			{
				fetched: (plain) => (url, init) => {
					urls.push(String(url));
					return plain(url, init);
				},
			},
		);
		fake.on("/pixel", (_, response) => void response.writeHead(200, { "content-type": "image/webp" }).end("pixel"));
		fake.on(
			"/v1/images/generations",
			(_, response) => void response.end(JSON.stringify({ data: [{ url: `${fake.url}/pixel` }] })),
		);
		await provider.image({ model: "i", prompt: "a boat" }, signal());
		expect(urls).toEqual([`${fake.url}/pixel`]);
	});

	test("Z27: a picture's address passes the same guard", async () => {
		const { fake, provider } = await opened();
		for (const url of ["https://169.254.169.254/latest", "http://10.0.0.1/", "https://[64:ff9b::7f00:1]/"]) {
			fake.on("/v1/images/generations", (_, response) => void response.end(JSON.stringify({ data: [{ url }] })));
			await rejectsWith(provider.image({ model: "i", prompt: "x" }, signal()), "forbidden", "AI_ENDPOINT_FORBIDDEN");
		}
	});

	test("embeddings are in the order of their texts", async () => {
		const { provider } = await opened();
		expect(await provider.embed({ model: "e", inputs: ["a", "bcd"] }, signal())).toEqual({
			vectors: [
				[1, 1],
				[3, 1],
			],
			inputTokens: 4,
		});
	});

	test("audio is sent as a file with a name that tells its format", async () => {
		const { fake, provider } = await opened();
		const audio = { mimeType: "audio/webm", data: Buffer.from("sound") };
		expect(await provider.transcribe({ model: "w", audio, language: "de" }, signal())).toEqual({
			text: "what was said",
		});
		const { headers, body } = fake.seen.at(-1)!;
		expect(headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/);
		const form = body.toString();
		for (const part of ['name="model"', "w", 'filename="audio.webm"', "sound", 'name="language"', "de"])
			expect(form).toContain(part);
	});

	test("an answer of another shape is said to be one", async () => {
		const { fake, provider } = await opened();
		for (const body of ["<html>", "{}", '{"data":[]}']) {
			fake.on("/v1/embeddings", (_, response) => void response.end(body));
			await expect(provider.embed({ model: "e", inputs: ["a"] }, signal())).rejects.toMatchObject({
				reason: "AI_PROVIDER_FAILED",
				message: expect.stringContaining("c answers with"),
			});
		}
	});

	test("what a provider does not offer is refused before anything is sent", async () => {
		const { fake, provider } = await opened("anthropic", "");
		await rejectsWith(
			provider.embed({ model: "e", inputs: ["a"] }, signal()),
			"precondition",
			"AI_SCENARIO_UNSUPPORTED",
		);
		expect(fake.seen).toEqual([]);
	});
});
