/** Speaks an answer sentence by sentence while its text comes. It can be silenced at any time. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { createSentences } from "./sentences.ts";

/** Audio of one sentence as it comes. */
export type Speak = (
	text: string,
	signal: AbortSignal,
) => Promise<{ mimeType: string; audio: AsyncIterable<Uint8Array> }>;

export interface VoiceOptions {
	speak: Speak;
	/** Resolves when there is room for more. */
	heard(audio: Uint8Array, mimeType: string): Promise<void>;
	limits: { speakMs: number; sentencesMax: number };
	clock: Clock;
}

export interface Voice {
	/** Resolves when not too many sentences wait. */
	push(delta: string): Promise<void>;
	/** Resolves when all of it was spoken, or will not be: it was silenced before its end, or a fault kept it. */
	end(): Promise<{ silenced: boolean; fault?: NexusError }>;
	silence(): void;
}

/** Largest piece of audio in the log. */
const PIECE_BYTES = 48 * 1024;

export function createVoice({ speak, heard, limits, clock }: VoiceOptions): Voice {
	const sentences = createSentences();
	const silenced = new AbortController();
	let fault: NexusError | undefined;
	let isWhole = true;
	let waiting = 0;
	let last = Promise.resolve();

	const leaveOut = () => {
		isWhole = false;
	};

	async function say(text: string): Promise<void> {
		if (text.trim() === "" || fault) return;
		if (silenced.signal.aborted) return leaveOut();
		const late = new AbortController();
		const cancel = clock.after(limits.speakMs, () => late.abort(tooLate()));
		const signal = AbortSignal.any([silenced.signal, late.signal]);
		try {
			const { mimeType, audio } = await speak(text.trim(), signal);
			for await (const bytes of audio) {
				for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
					if (silenced.signal.aborted) return leaveOut();
					await heard(bytes.subarray(at, at + PIECE_BYTES), mimeType);
				}
			}
		} catch (cause) {
			if (silenced.signal.aborted) return leaveOut();
			fault = late.signal.aborted ? tooLate() : toNexusError(cause, "engine_failed");
		} finally {
			cancel();
		}
	}

	function enqueue(all: readonly string[]): void {
		for (const text of all) {
			waiting++;
			last = last.then(() => say(text)).finally(() => waiting--);
		}
	}

	return {
		async push(delta) {
			enqueue(sentences.push(delta));
			if (waiting > limits.sentencesMax) await last;
		},
		async end() {
			enqueue(sentences.end());
			await last;
			return { silenced: !isWhole, fault };
		},
		silence: () => silenced.abort(),
	};
}

const tooLate = () =>
	new NexusError("timeout", "the speech connector took too long", { reason: "AI_PROVIDER_TIMEOUT" });
