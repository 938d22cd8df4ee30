/** StreamScenario and ExecuteScenario, from the request to the last event and the status. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
	RuntimeAiService,
	type ScenarioSchema,
	ScenarioType,
	type StreamScenarioRequestSchema,
	type StreamScenarioResponse,
} from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { ReasonCode } from "../../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { Batch } from "../../../packages/daemon/src/bus/bus.ts";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import { scenarioReaders } from "../../../packages/daemon/src/services/scenarios/codec.ts";
import { chunkEncoder, messageIdOf } from "../../../packages/protocol/src/protocol.ts";
import { manualClock } from "../../clock.ts";
import { connectorOf, finalOf, OWNER, type Play, type RigOptions, rig, saying } from "../../services/scenarios/rig.ts";
import { until } from "../../until.ts";
import { kitForTest, readStream, statusOf } from "./kit.ts";

const ALL = ["text", "speech", "image", "embed", "transcribe"] as const;

type Request = MessageInitShape<typeof StreamScenarioRequestSchema>;

async function edge(play: Play, options: RigOptions = {}) {
	const made = rig(play, options);
	const artifacts = {
		whole: async (id: string) => ({ artifact: { mimeType: "audio/wav" }, data: Buffer.from(`audio of ${id}`) }),
	};
	const services = { scenarios: made.scenarios, artifacts } as unknown as Partial<Services>;
	const clock = manualClock();
	const kit = await kitForTest({ services, clock });
	const client = kit.client(RuntimeAiService);
	/** With OK at its end. */
	const stream = async (request: Request): Promise<StreamScenarioResponse[]> => {
		const { messages, error } = await readStream(client.streamScenario(request));
		expect(error).toBeUndefined();
		return messages;
	};
	return { ...made, client, stream, clock };
}

type Scenario = MessageInitShape<typeof ScenarioSchema>;
const head = { appId: "shop", connectorId: "main", modelId: "small" };
const HELLO: Scenario = {
	head,
	spec: { case: "textGenerate", value: { messages: [{ role: "user", text: "hello" }] } },
};
const SPEAK: Scenario = { head, spec: { case: "speechSynthesize", value: { text: "read this" } } };

const WORDS = [
	"Many ",
	"small ",
	"tokens ",
	"that ",
	"are ",
	"joined ",
	"to ",
	"chunks ",
	"of ",
	"at ",
	"least ",
	"32 ",
	"bytes.",
];

/** K-STREAM-003: the shape of every text stream whose text did not wait. */
function expectText(events: readonly StreamScenarioResponse[], text: string): StreamScenarioResponse {
	const last = events.at(-1)!;
	expect(events.map(({ textDelta }) => textDelta).join("")).toBe(text);
	for (const [n, event] of events.slice(0, -1).entries()) {
		expect(event.done).toBe(false);
		expect(Buffer.byteLength(event.textDelta)).toBeGreaterThanOrEqual(n === 0 ? 1 : 32);
		expect(event.usage).toBeUndefined();
	}
	expect(last.done).toBe(true);
	expect(last.usage).toBeDefined();
	return last;
}

describe("StreamScenario, text", () => {
	test("R4-33, R4-34, R4-37, R4-59 to R4-63, K-STREAM-003: text, then a terminal with usage, then OK", async () => {
		const play: Play = async function* () {
			for (const delta of WORDS) {
				yield { type: "text", delta };
				await new Promise(setImmediate);
			}
			yield { type: "usage", input: 5, output: 13 };
		};
		const { stream } = await edge(play);
		const events = await stream({ scenario: HELLO });
		const last = expectText(events, WORDS.join(""));
		expect(events.length).toBeGreaterThan(1);
		expect(last).toMatchObject({
			reasonCode: ReasonCode.UNSPECIFIED,
			scenarioType: ScenarioType.TEXT_GENERATE,
			usage: { inputTokens: 5n, outputTokens: 13n },
			modelId: "small",
			reason: "",
		});
		expect(new Set(events.map(({ runId }) => runId)).size).toBe(1);
	});

	test("R4-35, R4-36: unknown tokens are -1, and a short answer is in the terminal", async () => {
		const { stream } = await edge(saying("short"));
		const [{ runId }] = (await stream({ scenario: HELLO })) as [StreamScenarioResponse];
		// Read again, when all of it is there at once: live, the first text does not wait for the end.
		const events = await stream({ runId });
		expect(events).toHaveLength(1);
		expect(events[0]).toMatchObject({ done: true, textDelta: "short", usage: { inputTokens: -1n, outputTokens: -1n } });
	});

	test("R4-38, R4-64, R4-76: a failure is a terminal with reason, usage and the rest of the text, never a status", async () => {
		const play: Play = async function* () {
			yield { type: "text", delta: "the beginning" };
			throw new Error("connection reset");
		};
		const { stream } = await edge(play);
		const last = expectText(await stream({ scenario: HELLO }), "the beginning");
		expect(last).toMatchObject({ reasonCode: ReasonCode.AI_PROVIDER_FAILED, reason: "connection reset" });
	});

	test("Z14: the first text leaves at once, and no later text waits longer than 50 ms", async () => {
		const steps = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
		const play: Play = async function* () {
			for (const [n, { promise }] of steps.entries()) {
				await promise;
				yield { type: "text", delta: `token ${n} ` };
			}
		};
		const { client, clock, bus } = await edge(play);
		const texts: string[] = [];
		let runId = "";
		const reading = readStream(client.streamScenario({ scenario: HELLO }), (event) => {
			({ runId } = event);
			texts.push(event.textDelta);
		});
		steps[0]!.resolve();
		await until("the first token is there", () => texts.length === 1);
		for (const n of [1, 2]) {
			const { head } = (await bus.describe(runId))!;
			steps[n]!.resolve();
			await until("the token is in the log", async () => (await bus.describe(runId))!.head > head);
			await until("the token waits", () => {
				clock.advance(29);
				clock.advance(1);
				return texts.length === n + 1;
			});
		}
		steps[3]!.resolve();
		const { messages, error } = await reading;
		expect(error).toBeUndefined();
		expect(messages.map(({ textDelta }) => textDelta)).toEqual(["token 0 ", "token 1 ", "token 2 ", "token 3 "]);
		expect(messages.at(-1)!.done).toBe(true);
	});

	test("Z3, Y4: a run is read again from every sequence, also from its terminal on", async () => {
		const { stream } = await edge(saying(...WORDS, '"quoted"\n', "漢字"));
		const all = await stream({ scenario: HELLO, idempotencyKey: "k" });
		const [{ runId }] = all as [StreamScenarioResponse];
		const text = all.map(({ textDelta }) => textDelta).join("");
		let before = "";
		for (const { sequence, textDelta, done } of all) {
			before += textDelta;
			const later = await stream({ runId, after: sequence });
			const last = expectText(later, done ? "" : text.slice(before.length));
			expect(last.sequence).toBe(all.at(-1)!.sequence);
		}
		const beyond = await stream({ runId, after: 10_000n });
		expect(beyond).toMatchObject([{ done: true, textDelta: "", usage: { inputTokens: -1n } }]);
	});

	test("Z15: the same key is the same run, from its beginning or from a sequence", async () => {
		let calls = 0;
		const play: Play = async function* () {
			calls++;
			for (const delta of WORDS) yield { type: "text", delta };
		};
		const { stream } = await edge(play);
		const first = await stream({ scenario: HELLO, idempotencyKey: "k", after: 7n });
		expectText(first, WORDS.join(""));
		const again = await stream({ scenario: HELLO, idempotencyKey: "k" });
		expectText(again, WORDS.join(""));
		expect(again[0]!.runId).toBe(first[0]!.runId);
		const rest = await stream({ scenario: HELLO, idempotencyKey: "k", after: first.at(-1)!.sequence });
		expect(rest).toMatchObject([{ done: true, textDelta: "" }]);
		expect(calls).toBe(1);
	});

	test("Y5: cancelling is a disconnect; with abort_on_cancel it stops the run", async () => {
		const endless: Play = async function* (signal) {
			while (!signal.aborted) {
				yield { type: "text", delta: "word after word after word after word " };
				await new Promise((resolve) => setTimeout(resolve, 1));
			}
		};
		const { client, scenarios, frames } = await edge(endless);
		const cancelled = async (request: Request): Promise<string> => {
			const cancel = new AbortController();
			let runId = "";
			const reading = (async () => {
				for await (const event of client.streamScenario(request, { signal: cancel.signal })) {
					({ runId } = event);
					cancel.abort();
				}
			})();
			await expect(reading).rejects.toMatchObject({ code: Code.Canceled });
			return runId;
		};
		const runId = await cancelled({ scenario: HELLO });
		expect(scenarios.live).toBe(1);
		await scenarios.abort(runId, OWNER);
		const stopped = await cancelled({ scenario: HELLO, abortOnCancel: true });
		expect(finalOf(await frames(stopped)).reason).toBe("aborted");
		await until("none is left", () => scenarios.live === 0);
	});

	test.each<[string, Request, string, string]>([
		["neither scenario nor run", {}, "InvalidArgument", "PROTOCOL_ENVELOPE_INVALID"],
		["both", { scenario: HELLO, runId: "run_1" }, "InvalidArgument", "PROTOCOL_ENVELOPE_INVALID"],
		["no specification", { scenario: { head } }, "InvalidArgument", "PROTOCOL_ENVELOPE_INVALID"],
		["no head", { scenario: { spec: HELLO.spec! } }, "InvalidArgument", "PROTOCOL_ENVELOPE_INVALID"],
		[
			"a type that does not agree",
			{ scenario: { ...HELLO, scenarioType: ScenarioType.TEXT_EMBED } },
			"InvalidArgument",
			"PROTOCOL_ENVELOPE_INVALID",
		],
		["a place in nothing", { scenario: HELLO, after: 3n }, "InvalidArgument", "PROTOCOL_ENVELOPE_INVALID"],
		["a run that is not there", { runId: "run_none" }, "NotFound", "NOT_FOUND"],
		["no application", { scenario: { ...HELLO, head: { connectorId: "main" } } }, "InvalidArgument", "APP_ID_REQUIRED"],
		[
			"an unknown connector",
			{ scenario: { ...HELLO, head: { appId: "shop", connectorId: "none" } } },
			"NotFound",
			"AI_CONNECTOR_NOT_FOUND",
		],
		[
			"an image",
			{ scenario: { head, spec: { case: "imageGenerate", value: { prompt: "a cat" } } } },
			"InvalidArgument",
			"AI_SCENARIO_UNSUPPORTED",
		],
	])("R4-27, Z9: %s is refused before there is a stream, and leaves no log", async (_, request, code, reason) => {
		const { client, bus } = await edge(saying("hi"), { connectors: [connectorOf("main", { kinds: ALL })] });
		const { messages, error } = await readStream(client.streamScenario(request));
		expect(statusOf(error)).toEqual({ code, reason: `REASON_CODE_${reason}` });
		expect(messages).toEqual([]);
		expect(await bus.list()).toEqual([]);
	});

	test("Z26: a key in metadata is used once, and is nowhere in the answers to the caller", async () => {
		const play: Play = async function* () {
			yield { type: "alive" };
			throw new Error("the key sk-secret is wrong");
		};
		const { client, connectors } = await edge(play);
		const headers = { "x-nexus-provider-type": "openai", "x-nexus-provider-api-key": "sk-secret" };
		const scenario = { ...HELLO, head: { appId: "shop", modelId: "small" } };
		const { messages, error } = await readStream(client.streamScenario({ scenario }, { headers }));
		expect(error).toBeUndefined();
		expect(connectors.inline).toMatchObject([{ apiKey: "sk-secret" }]);
		expect(messages).toMatchObject([{ done: true, reason: "the key [redacted] is wrong" }]);
	});
});

test("I6: a backlog becomes messages once for readers that come one after another, and is worked out again at another place", () => {
	const encode = chunkEncoder(messageIdOf("run_1", 1));
	const batches = [0, 1, 2].map((n) =>
		Batch.of(
			2 + n * 100,
			Array.from({ length: 100 }, (_, at) => encode(n * 100 + at + 1, `token ${at} `, 0)),
		),
	);
	const readerOf = scenarioReaders(30);
	const facts = { appId: "shop", userId: "owner", kind: "text", model: "small", demo: false, startedAt: 0 } as const;
	const read = (all: readonly Batch[]) => {
		const { messages } = readerOf("run_1", facts);
		return all.flatMap((batch) => [...messages(batch)]);
	};
	const first = read(batches);
	expect(first.length).toBeGreaterThan(2);
	const second = read(batches);
	expect(second.every((event, n) => event === first[n])).toBe(true);
	const later = read(batches.slice(1));
	expect(later.map(({ textDelta }) => textDelta).join("")).toBe(
		first
			.slice(1)
			.map(({ textDelta }) => textDelta)
			.join(""),
	);
});

describe("StreamScenario, speech (K-STREAM-004)", () => {
	const speaking = (failure?: Error): RigOptions => ({
		provider: {
			demo: true,
			speak: async () => ({
				mimeType: "audio/wav",
				audio: (async function* () {
					yield Buffer.from("RIFF");
					yield Buffer.alloc(0);
					yield Buffer.alloc(20_000, 7);
					if (failure) throw failure;
				})(),
			}),
		},
	});

	test("R4-39, R4-40, R4-42: sound in chunks that are not empty, then a terminal without any", async () => {
		const { stream } = await edge(saying(), speaking());
		const events = await stream({ scenario: SPEAK });
		const sound = events.slice(0, -1);
		expect(
			sound.every(({ audioChunk, done, mimeType }) => audioChunk.length > 0 && !done && mimeType === "audio/wav"),
		).toBe(true);
		expect(Buffer.concat(sound.map(({ audioChunk }) => audioChunk))).toEqual(
			Buffer.concat([Buffer.from("RIFF"), Buffer.alloc(20_000, 7)]),
		);
		expect(events.at(-1)).toMatchObject({ done: true, reasonCode: ReasonCode.UNSPECIFIED, textDelta: "", demo: true });
		expect(events.at(-1)!.audioChunk).toHaveLength(0);
		const later = await stream({ runId: events[0]!.runId, after: events[0]!.sequence });
		expect(later.slice(0, -1).map(({ sequence, mimeType }) => [sequence, mimeType])).toEqual(
			sound.slice(1).map(({ sequence }) => [sequence, "audio/wav"]),
		);
	});

	test("R4-41, Y13: a failure has a reason, usage, and no sound", async () => {
		const { stream } = await edge(saying(), speaking(new Error("voice lost")));
		const last = (await stream({ scenario: SPEAK })).at(-1)!;
		expect(last).toMatchObject({ done: true, reasonCode: ReasonCode.AI_PROVIDER_FAILED, usage: { inputTokens: -1n } });
		expect(last.audioChunk).toHaveLength(0);
	});
});

describe("ExecuteScenario", () => {
	test("answers with the whole text, and the same key with the same run", async () => {
		const { client } = await edge(saying(...WORDS));
		const answer = await client.executeScenario({ scenario: HELLO, idempotencyKey: "k" });
		expect(answer).toMatchObject({
			text: WORDS.join(""),
			modelId: "small",
			reasonCode: ReasonCode.UNSPECIFIED,
			usage: { inputTokens: -1n },
		});
		const again = await client.executeScenario({ scenario: HELLO, idempotencyKey: "k" });
		expect(again.runId).toBe(answer.runId);
	});

	test("a failure after establishment is an answer with a reason and what there is", async () => {
		const play: Play = async function* () {
			yield { type: "text", delta: "half" };
			throw new Error("gone");
		};
		const { client } = await edge(play);
		const answer = await client.executeScenario({ scenario: HELLO });
		expect(answer).toMatchObject({ text: "half", reasonCode: ReasonCode.AI_PROVIDER_FAILED, reason: "gone" });
	});

	test("an answer that does not fit one message is named, and read as a stream", async () => {
		const long = "word ".repeat(200_000);
		const { client, stream } = await edge(saying(long));
		const answer = await client.executeScenario({ scenario: HELLO });
		expect(answer).toMatchObject({ text: "", reasonCode: ReasonCode.TOO_LARGE });
		expectText(await stream({ runId: answer.runId }), long);
	});

	test("embeddings and a transcript that do not fit one message are named, and read as a stream, from any event on", async () => {
		const vectors = Array.from({ length: 80 }, (_, n) =>
			Array.from({ length: 3072 }, (_, at) => Math.fround(n + at / 7)),
		);
		const transcript = "word ".repeat(200_000);
		const provider = {
			embed: async () => ({ vectors, inputTokens: 4 }),
			transcribe: async () => ({ text: transcript }),
		};
		const { client, stream } = await edge(saying(), { provider });
		const embed: Scenario = {
			head,
			spec: { case: "textEmbed", value: { inputs: vectors.map((_, n) => `input ${n}`) } },
		};
		const answer = await client.executeScenario({ scenario: embed });
		expect(answer).toMatchObject({ embeddings: [], reasonCode: ReasonCode.TOO_LARGE });
		const events = await stream({ runId: answer.runId });
		const vectorsOf = (all: readonly StreamScenarioResponse[]) =>
			all.flatMap(({ embeddings }) => embeddings.map(({ values }) => values));
		expect(vectorsOf(events)).toEqual(vectors);
		expect(events.at(-1)).toMatchObject({ done: true, textDelta: "", usage: { inputTokens: 4n } });
		const rest = await stream({ runId: answer.runId, after: events[30]!.sequence });
		expect(vectorsOf(rest)).toEqual(vectors.slice(31));
		const heard = await client.executeScenario({
			scenario: { head, spec: { case: "speechTranscribe", value: { artifactId: "art_1" } } },
		});
		expect(heard).toMatchObject({ text: "", reasonCode: ReasonCode.TOO_LARGE });
		expectText(await stream({ runId: heard.runId }), transcript);
	});

	test("embeddings and transcriptions", async () => {
		const provider = {
			embed: async () => ({ vectors: [[0.5, 2]], inputTokens: 4 }),
			transcribe: async ({ audio }: { audio: { data: Uint8Array } }) => ({ text: Buffer.from(audio.data).toString() }),
		};
		const { client } = await edge(saying(), { provider });
		const embed = await client.executeScenario({
			scenario: { head, spec: { case: "textEmbed", value: { inputs: ["a"] } } },
		});
		expect(embed.embeddings.map(({ values }) => values)).toEqual([[0.5, 2]]);
		const heard = (value: { audio?: Uint8Array<ArrayBuffer>; artifactId?: string }) =>
			client.executeScenario({ scenario: { head, spec: { case: "speechTranscribe", value } } });
		expect((await heard({ audio: Buffer.from("inline") })).text).toBe("inline");
		expect((await heard({ artifactId: "art_1" })).text).toBe("audio of art_1");
	});
});
