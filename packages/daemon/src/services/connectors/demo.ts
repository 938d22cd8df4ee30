/** The offline provider: made-up answers that are the same for the same request, and labelled wherever there is room for a label. */

import type { Engine } from "@nexus-stream/protocol/engine";
import { seededRandom, seedOf } from "../../std/seed.ts";
import { demoVoice } from "./demo-voice.ts";
import { engineText } from "./engine-provider.ts";
import type { OpenProvider } from "./http-provider.ts";
import type { Media } from "./port.ts";

export const demoProvider = (engine: Engine): OpenProvider => ({
	demo: true,
	text: (request, signal) => engineText(engine, request, signal),
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

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

export const DEMO_DIMENSIONS = 64;

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
