/** Text chunks of at least 32 bytes (K-STREAM-006): small tokens are joined at the edge, while the log keeps each. Pure. */

/** Of UTF-8, in a chunk that is not the last. */
const CHUNK_BYTES_MIN = 32;
/** A chunk is not joined with more than that: a reader that catches up gets few, and none that is large. */
const CHUNK_CHARS_MAX = 16 * 1024;

export interface Token {
	/** Whole characters. */
	text: string;
	/** Of its record. */
	offset: number;
}

/** Text that is not sent yet. */
export interface Held {
	text: string;
	bytes: number;
}

export const NOTHING_HELD: Held = { text: "", bytes: 0 };

export interface TextChunk {
	text: string;
	/** Offset of the last record in it: a reader that goes on after it misses nothing and gets nothing twice. */
	sequence: number;
}

/** Joins what is there at once: as few chunks as the limits allow, and what is too small waits for more. */
export function coalesce(before: Held, tokens: readonly Token[]): { held: Held; chunks: TextChunk[] } {
	const chunks: TextChunk[] = [];
	let { text, bytes } = before;
	let sequence = 0;
	const flush = () => {
		chunks.push({ text, sequence });
		text = "";
		bytes = 0;
	};
	for (const token of tokens) {
		text += token.text;
		bytes += Buffer.byteLength(token.text);
		sequence = token.offset;
		if (text.length >= CHUNK_CHARS_MAX) flush();
	}
	if (bytes >= CHUNK_BYTES_MIN) flush();
	return { held: { text, bytes }, chunks };
}
