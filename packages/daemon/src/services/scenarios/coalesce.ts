/** Text chunks of at least 32 bytes (K-STREAM-006): small tokens are joined at the edge, while the log keeps each. Pure. */

/** Minimum of UTF-8 in a chunk that is neither the first nor the last, and whose text did not wait too long. */
const CHUNK_BYTES_MIN = 32;
/** A chunk is not joined with more than that: a reader that catches up gets few, and none that is large. */
const CHUNK_CHARS_MAX = 16 * 1024;

export interface Token {
	/** Whole characters. */
	text: string;
	/** Offset of its record. */
	offset: number;
}

/** Text that is not sent yet. */
export interface Held {
	text: string;
	bytes: number;
	/** Offset of the last record in it. */
	sequence: number;
	/** A chunk was sent before it. */
	begun: boolean;
}

export const NOTHING_HELD: Held = { text: "", bytes: 0, sequence: 0, begun: false };

export interface TextChunk {
	text: string;
	/** Offset of the last record in it: a reader that resumes after it misses nothing and gets nothing twice. */
	sequence: number;
}

/**
 * Joins what is there at once: as few chunks as the limits allow, and what is too small waits for more. The first chunk does not wait, unless
 * `ends` says that the terminal is there, too.
 */
export function coalesce(before: Held, tokens: readonly Token[], ends = false): { held: Held; chunks: TextChunk[] } {
	const chunks: TextChunk[] = [];
	let { text, bytes, sequence, begun } = before;
	const flush = () => {
		chunks.push({ text, sequence });
		text = "";
		bytes = 0;
		begun = true;
	};
	for (const token of tokens) {
		text += token.text;
		bytes += Buffer.byteLength(token.text);
		sequence = token.offset;
		if (text.length >= CHUNK_CHARS_MAX) flush();
	}
	if (bytes >= CHUNK_BYTES_MIN || (bytes > 0 && !begun && !ends)) flush();
	return { held: { text, bytes, sequence, begun }, chunks };
}

/** Sends text that has waited long enough, however small it is. */
export const release = ({ text, sequence }: Held): { held: Held; chunk: TextChunk } => ({
	held: { text: "", bytes: 0, sequence, begun: true },
	chunk: { text, sequence },
});
