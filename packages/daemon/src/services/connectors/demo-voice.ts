/** The demo voice: one short tone for each word, as a WAV file that comes word by word and says in its header what it is. */

import { seedOf } from "../../std/seed.ts";

const SAMPLE_RATE_HZ = 8_000;
const TONE_MS = 120;
const TONE_BYTES = (SAMPLE_RATE_HZ * TONE_MS) / 1000;
const LABEL = "Nexus demo voice: tones instead of speech, no model is configured";
/** A text of any length ends: two hours of tones are enough. */
const WORDS_MAX = 60_000;

/** The first chunk is the header; it knows the length of what follows. */
export async function* demoVoice(text: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
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
