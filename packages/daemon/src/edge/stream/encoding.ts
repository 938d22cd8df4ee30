/** A dialect's text as what is written to a socket: in chunks or plain, and encoded once where readers share a dialect. */

import type { Batch } from "../../bus/bus.ts";
import type { StreamFormat } from "./formats.ts";
import type { Encoder } from "./pump.ts";

/** Written unchanged: bytes, or a text of ASCII alone, which the socket takes at half the cost of encoding it. */
export type Encoded = string | Buffer;

type Encode = (batch: Batch) => Encoded | undefined;

/** `excess` is how many bytes more than characters the text has. */
type Coding = (text: string, excess: number) => Encoded;

/** 0 for ASCII. */
const excessBytes = (text: string): number => Buffer.byteLength(text) - text.length;

/** As it is. HTTP/1.0 has no chunked coding: there the end of the connection is the end of the body. */
export const plain: Coding = (text, excess) => (excess === 0 ? text : Buffer.from(text));

/** One chunk of HTTP/1.1's chunked coding. Framed here, once for all readers: that is a third of the cost of a small write. */
export const chunked: Coding = (text, excess) => plain(`${(text.length + excess).toString(16)}\r\n${text}\r\n`, excess);

/** The encoder of one more reader; the same one for all readers of a shared dialect. */
export function createEncoders(coding: Coding): (dialect: StreamFormat) => Encoder<Encoded> {
	const shared = new Map<StreamFormat, Encoder<Encoded>>();
	return (dialect) => {
		let encoder = shared.get(dialect);
		if (encoder) return encoder;
		encoder = onWire(dialect.open(), coding, dialect.shared);
		if (dialect.shared) shared.set(dialect, encoder);
		return encoder;
	};
}

function onWire(encoder: Encoder<string>, coding: Coding, isShared = false): Encoder<Encoded> {
	/** No text, no chunk: an empty one would end the body. */
	const coded = (text: string | undefined) => (text ? coding(text, excessBytes(text)) : undefined);
	/** The records are measured instead of the text: measuring a text that was just put together means to copy it. */
	const codedRecords: Encode = (batch) => {
		const text = encoder.text(batch);
		return text ? coding(text, excessBytes(batch.text)) : undefined;
	};
	const heartbeat = coded(encoder.heartbeat);
	return {
		open: () => coded(encoder.open?.()),
		text: isShared ? sharedEncoding(codedRecords) : (batch) => coded(encoder.text(batch)),
		end: () => coded(encoder.end?.()),
		get heartbeat() {
			return isShared ? heartbeat : coded(encoder.heartbeat);
		},
	};
}

/** From here on a batch is a piece of a backlog, whose readers come one after another; a smaller one is read by all who follow in the same tick. */
const BACKLOG_CHARS_MIN = 1024;
/** Characters of all cached backlog batches together. */
const MADE_CHARS_MAX = 4 * 1024 * 1024;

/** Keeps what the newest batches of backlogs became, for the readers that come to them next. Bounded, so that a long replay leaves nothing behind. */
export class EncodedCache<What> {
	readonly #made = new Map<Batch, What>();
	#chars = 0;

	/** Whether it is worth keeping. */
	static keeps = ({ text }: Batch): boolean => text.length >= BACKLOG_CHARS_MIN;

	get(batch: Batch): What | undefined {
		return this.#made.get(batch);
	}

	set(batch: Batch, what: What): void {
		if (!this.#made.has(batch)) this.#chars += batch.text.length;
		this.#made.set(batch, what);
		for (const oldest of this.#made.keys()) {
			if (this.#chars <= MADE_CHARS_MAX) return;
			this.#made.delete(oldest);
			this.#chars -= oldest.text.length;
		}
	}
}

/**
 * Encodes a batch once for all its readers. A small batch with one reader stays a text, which is the cheapest to write once;
 * from the second reader on it is bytes.
 */
export function sharedEncoding(encode: Encode): Encode {
	const shared = new WeakMap<Batch, Buffer>();
	const made = new EncodedCache<Buffer>();
	let newest: Batch | undefined;
	let newestText: Encoded | undefined;
	const encodeBacklog: Encode = (batch) => {
		const known = made.get(batch);
		if (known) return known;
		const encoded = encode(batch);
		if (encoded === undefined) return undefined;
		const bytes = bytesOf(encoded);
		made.set(batch, bytes);
		return bytes;
	};
	return (batch) => {
		if (EncodedCache.keeps(batch)) return encodeBacklog(batch);
		if (batch === newest && newestText !== undefined) {
			const encoded = bytesOf(newestText);
			newestText = undefined;
			shared.set(batch, encoded);
			return encoded;
		}
		const encoded = shared.get(batch);
		if (encoded || batch === newest) return encoded;
		newest = batch;
		newestText = encode(batch);
		return newestText;
	};
}

const bytesOf = (encoded: Encoded): Buffer => (typeof encoded === "string" ? Buffer.from(encoded, "latin1") : encoded);
