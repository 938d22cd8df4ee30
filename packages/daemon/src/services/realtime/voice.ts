/** Speaks an answer sentence by sentence while its text comes. It can be silenced at any time. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Provider } from "../connectors/port.ts";

export interface VoiceOptions {
	/** Audio of one sentence as it comes. */
	speak(text: string, signal: AbortSignal): ReturnType<Provider["speak"]>;
	/** Resolves when there is room for more. */
	heard(audio: Uint8Array, mimeType: string): Promise<void>;
	limits: { speakMs: number; sentencesMax: number };
	clock: Clock;
}

export type Voice = ReturnType<typeof createVoice>;

/** Largest piece of audio in the log. */
const PIECE_BYTES = 48 * 1024;

export function createVoice({ speak, heard, limits, clock }: VoiceOptions) {
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
		/** Resolves when not too many sentences wait. */
		async push(delta: string): Promise<void> {
			enqueue(sentences.push(delta));
			if (waiting > limits.sentencesMax) await last;
		},
		/** Resolves when all of it was spoken, or will not be: it was silenced before its end, or a fault kept it. */
		async end(): Promise<{ silenced: boolean; fault?: NexusError }> {
			enqueue(sentences.end());
			await last;
			return { silenced: !isWhole, fault };
		},
		silence: () => silenced.abort(),
	};
}

const tooLate = () =>
	new NexusError("timeout", "the speech connector took too long", { reason: "AI_PROVIDER_TIMEOUT" });

/** A shorter piece waits for more: "Dr." or "No." alone sound cut off. */
const CHARS_MIN = 12;
/** A longer one is cut where it has a space. */
const CHARS_MAX = 400;

/** The end of a sentence, with the quotes and brackets that may follow it; Latin punctuation counts only before a space. */
const END = /[.!?…]["'”’»)\]]*(?=\s)|[。！？]["'”’»）」』]*|\n/gu;

/** Cuts text that grows into pieces that can be spoken: where a sentence ends, and before one gets too long, however the text came. Pure. */
export function createSentences() {
	let rest = "";
	return {
		/** Returns the sentences that are complete now. Joined, all results are the text. */
		push(delta: string): string[] {
			rest += delta;
			const found: string[] = [];
			for (let at = cutAt(rest); at > 0; at = cutAt(rest)) {
				found.push(rest.slice(0, at));
				rest = rest.slice(at);
			}
			return found;
		},
		/** Returns the rest. */
		end(): string[] {
			const left = rest === "" ? [] : [rest];
			rest = "";
			return left;
		},
	};
}

/** Where the first sentence ends for sure, whatever follows; 0 = not yet. */
function cutAt(text: string): number {
	END.lastIndex = 0;
	// One more character than the longest piece has been seen: nothing that comes can change the verdict.
	const isFull = text.length > CHARS_MAX;
	for (let match = END.exec(text); match; match = END.exec(text)) {
		const at = match.index + match[0].length;
		if (at > CHARS_MAX) break;
		// A closing quotation mark may still come.
		if (at === text.length && !match[0].endsWith("\n")) break;
		if (at >= CHARS_MIN) return at;
	}
	if (!isFull) return 0;
	const space = text.slice(0, CHARS_MAX).search(/\s\S*$/u);
	if (space >= CHARS_MIN) return space + 1;
	const isPair = /[\uD800-\uDBFF]/.test(text[CHARS_MAX - 1]!);
	return isPair ? CHARS_MAX - 1 : CHARS_MAX;
}
