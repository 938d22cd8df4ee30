/** Providers made of the daemon's own engine: text without a session and without tools, and the offline demonstration of the other kinds. */

import { newId } from "@nexus-stream/protocol";
import type { Engine, EngineMessage } from "@nexus-stream/protocol/engine";
import { seededRandom, seedOf } from "../../std/seed.ts";
import type { OpenProvider } from "./http-provider.ts";
import type { Media, ScenarioKind, TextEvent, TextRequest } from "./port.ts";
import { unsupported } from "./provider-types.ts";

/** The connector `default` of an engine whose model cannot be called directly. */
export function engineProvider(engine: Engine, name: string): OpenProvider {
	const no = (kind: ScenarioKind) => async () => Promise.reject(unsupported(name, kind));
	return {
		demo: false,
		text: (request, signal) => textOf(engine, request, signal),
		speak: no("speech"),
		image: no("image"),
		embed: no("embed"),
		transcribe: no("transcribe"),
		models: async () => [engine.name],
	};
}

/** Made-up answers that are the same for the same request, and labelled wherever there is room for a label. */
export const demoProvider = (engine: Engine): OpenProvider => ({
	demo: true,
	text: (request, signal) => textOf(engine, request, signal),
	speak: async ({ text }, signal) => ({ mimeType: "audio/wav", audio: demoVoice(text, signal) }),
	image: async ({ prompt, count = 1 }) => Array.from({ length: count }, (_, n) => drawing(prompt, n)),
	embed: async ({ inputs }) => ({
		vectors: inputs.map(vectorOf),
		inputTokens: inputs.reduce((sum, text) => sum + wordsOf(text).length, 0),
	}),
	transcribe: async ({ audio }) => ({
		text: `Demo transcription: no model is configured. ${audio.data.byteLength} bytes of ${audio.mimeType} arrived.`,
	}),
	models: async () => ["demo"],
});

/** No tool is offered, so none can take longer. */
const TOOL_TIMEOUT_MS = 1000;

async function* textOf(engine: Engine, request: TextRequest, signal: AbortSignal): AsyncGenerator<TextEvent, void> {
	const messages: EngineMessage[] = request.messages.map(({ role, text }) => ({ role, text }));
	if (request.system !== undefined) messages.unshift({ role: "user", text: request.system });
	const runId = newId("run");
	const asked = { session: runId, runId, messages, attachments: [], allowedTools: [], toolTimeoutMs: TOOL_TIMEOUT_MS };
	for await (const yielded of engine.run(asked, { signal })) {
		for (const event of Array.isArray(yielded) ? yielded : [yielded]) {
			if (event.type === "text") {
				if (event.delta !== "") yield { type: "text", delta: event.delta };
			} else if (event.type === "usage") yield { type: "usage", input: event.input, output: event.output };
			else yield { type: "alive" };
		}
	}
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

const DEMO_DIMENSIONS = 64;

/** Each word points in a different direction, so that texts with the same words are near each other. Of length 1. */
function vectorOf(text: string): number[] {
	const sum = Array<number>(DEMO_DIMENSIONS).fill(0);
	for (const word of wordsOf(text)) {
		const random = seededRandom(seedOf(word));
		for (let n = 0; n < DEMO_DIMENSIONS; n++) sum[n]! += random() - 0.5;
	}
	const length = Math.hypot(...sum);
	return length === 0 ? [1, ...sum.slice(1)] : sum.map((value) => value / length);
}

const PROMPT_CHARS_MAX = 60;
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function drawing(prompt: string, number: number): Media {
	const hue = seedOf(`${number} ${prompt}`) % 360;
	const shown = Array.from(prompt)
		.slice(0, PROMPT_CHARS_MAX)
		.join("")
		.replace(/[&<>]/g, (sign) => ENTITIES[sign]!);
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="512" height="256" viewBox="0 0 512 256"><rect width="512" height="256" fill="hsl(${hue} 45% 40%)"/><text x="24" y="120" fill="#fff" font-family="sans-serif" font-size="28">Demo picture ${number + 1}</text><text x="24" y="152" fill="#fff" font-family="sans-serif" font-size="14">${shown}</text></svg>`;
	return { mimeType: "image/svg+xml", data: Buffer.from(svg, "utf8") };
}

const SAMPLE_RATE_HZ = 8_000;
const TONE_MS = 120;
const TONE_BYTES = (SAMPLE_RATE_HZ * TONE_MS) / 1000;
const LABEL = "Nexus demo voice: tones instead of speech, no model is configured";
/** A text of any length ends: two hours of tones are enough. */
const WORDS_MAX = 60_000;

/** One short tone for each word, as a WAV file that comes word by word and says in its header what it is. The header knows the length of what follows. */
async function* demoVoice(text: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
	const words = (text.match(/\S+/gu) ?? [""]).slice(0, WORDS_MAX);
	yield header(words.length * TONE_BYTES);
	for (const word of words) {
		// Between two words others have their turn.
		await new Promise((resolve) => setImmediate(resolve));
		signal.throwIfAborted();
		yield tone(220 + (seedOf(word) % 12) * 40);
	}
}

function header(dataBytes: number): Buffer {
	const label = Buffer.from(`${LABEL}\0${LABEL.length % 2 === 0 ? "\0" : ""}`, "latin1");
	const format = Buffer.alloc(16);
	format.writeUInt16LE(1, 0);
	format.writeUInt16LE(1, 2);
	format.writeUInt32LE(SAMPLE_RATE_HZ, 4);
	format.writeUInt32LE(SAMPLE_RATE_HZ, 8);
	format.writeUInt16LE(1, 12);
	format.writeUInt16LE(8, 14);
	const info = Buffer.concat([Buffer.from("INFO"), chunk("ICMT", label)]);
	const parts = Buffer.concat([Buffer.from("WAVE"), chunk("fmt ", format), chunk("LIST", info)]);
	return Buffer.concat([head("RIFF", parts.length + 8 + dataBytes), parts, head("data", dataBytes)]);
}

const chunk = (id: string, body: Buffer): Buffer => Buffer.concat([head(id, body.length), body]);

function head(id: string, bytes: number): Buffer {
	const made = Buffer.alloc(8);
	made.write(id, "latin1");
	made.writeUInt32LE(bytes, 4);
	return made;
}

/** Mono, 8 bit, faded at both ends so that it does not click. */
function tone(frequencyHz: number): Buffer {
	const samples = Buffer.alloc(TONE_BYTES);
	const fade = TONE_BYTES / 6;
	for (let i = 0; i < TONE_BYTES; i++) {
		const loudness = 60 * Math.min(1, i / fade, (TONE_BYTES - i) / fade);
		samples[i] = 128 + Math.round(loudness * Math.sin((2 * Math.PI * frequencyHz * i) / SAMPLE_RATE_HZ));
	}
	return samples;
}
