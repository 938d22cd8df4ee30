/** How large a chunk of each modality may be (P1.18): the one table of sizes, each with its reason. */

import type { Modality } from "./frame.ts";

const KIB = 1024;

/** UTF-8 bytes of a chunk's payload. A longer value becomes several chunks; Infinity = it is never cut. */
export const CHUNK_BYTES = {
	/** Tokens are far smaller. A page of text at once still fits one render and one commit. */
	text: 16 * KIB,
	/** As text. */
	reasoning: 16 * KIB,
	/** Half a status says nothing: readers take each chunk as one. `toolJsonCharsMax` bounds what it holds. */
	tool: Number.POSITIVE_INFINITY,
	/** Half a card cannot be drawn, so only what no reader should have to take in one piece is cut. */
	card: 64 * KIB,
	carousel: 64 * KIB,
	/** 48 KiB decoded: few chunks per picture, and text on the same connection does not wait long for one. */
	image: 64 * KIB,
	/** 12 KiB decoded, under a second of ordinary speech: playing can begin with the first. */
	audio: 16 * KIB,
	/** Nothing is known of what it is for; also for modalities that this version does not know. */
	data: 64 * KIB,
} as const satisfies Record<string, number>;

export const chunkBytesOf = (modality: Modality): number =>
	Object.hasOwn(CHUNK_BYTES, modality) ? CHUNK_BYTES[modality as keyof typeof CHUNK_BYTES] : CHUNK_BYTES.data;
