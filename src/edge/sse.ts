/** The hot path: a cursor's batches become bytes on a socket. A reader pulls while its socket has room, so a slow one costs one batch of memory (I6). */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Batch, Cursor } from "../bus/bus.ts";
import { frameTypeOf, NexusError, toNexusError } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";

/** How one wire spells batches. */
interface Dialect {
	headers: Readonly<Record<string, string>>;
	/** Sent at once, before any record. */
	opening: string;
	/** Sent to a reader that got nothing for a while. */
	heartbeat: string;
	text(batch: Batch): string;
}

export const SSE: Dialect = {
	headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
	opening: "retry: 1000\n\n",
	heartbeat: ": hb\n\n",
	text({ first, text }) {
		let events = "";
		let id = first;
		for (let at = 0; ; ) {
			const end = text.indexOf("\n", at);
			const record = end < 0 ? text.slice(at) : text.slice(at, end);
			events += `id: ${id++}\nevent: ${frameTypeOf(text, at) ?? "message"}\ndata: ${record}\n\n`;
			if (end < 0) return events;
			at = end + 1;
		}
	},
};

export const NDJSON: Dialect = {
	headers: { "Content-Type": "application/x-ndjson" },
	opening: "",
	heartbeat: "",
	text: ({ text }) => `${text}\n`,
};

/** What is written as it is: bytes, or a text of ASCII alone, which the socket takes at half the cost of encoding it. */
type Encoded = string | Buffer;

/** How many bytes more than characters a text has: 0 for ASCII. */
const excessBytes = (text: string): number => Buffer.byteLength(text) - text.length;

const encoded = (text: string, excess: number): Encoded => (excess === 0 ? text : Buffer.from(text));

/**
 * One chunk of HTTP/1.1's chunked coding. Framed here, once for all readers: that is a third of the cost of a small write.
 * `excess` is the text's; it is passed in, because measuring a text that was just put together means to copy it.
 */
const framed = (text: string, excess: number): Encoded =>
	encoded(`${(text.length + excess).toString(16)}\r\n${text}\r\n`, excess);

type Encode = (batch: Batch) => Encoded;

/**
 * Encodes a batch once for all its readers. A batch with one reader stays a text, which is the cheapest to write once;
 * from the second reader on it is bytes.
 */
export function sharedEncoding(encode: Encode): Encode {
	const shared = new WeakMap<Batch, Buffer>();
	let newest: Batch | undefined;
	let newestText: Encoded = "";
	return (batch) => {
		if (batch !== newest) {
			const bytes = shared.get(batch);
			if (bytes) return bytes;
			newest = batch;
			newestText = encode(batch);
			return newestText;
		}
		let bytes = shared.get(batch);
		if (!bytes) {
			bytes = typeof newestText === "string" ? Buffer.from(newestText, "latin1") : newestText;
			shared.set(batch, bytes);
			newestText = "";
		}
		return bytes;
	};
}

export interface Readers {
	/** Sends the headers, then everything the cursor gives until it has ended. Throws before the first byte only (I9). */
	open(response: ServerResponse, cursor: Cursor, dialect: Dialect): void;
	heartbeat(): void;
	/** Cuts every reader, for good, without a terminal: the log tells the truth to who resumes (I3). */
	cut(): void;
	readonly count: number;
	readonly stalled: number;
}

export function createReaders(log: Log): Readers {
	const readers = new Set<Reader>();
	const encoders = new Map<Dialect, Encode>(
		[SSE, NDJSON].map((dialect) => [
			dialect,
			// What a dialect adds is ASCII.
			sharedEncoding((batch) => framed(dialect.text(batch), excessBytes(batch.text))),
		]),
	);
	let stalled = 0;
	let closed = false;
	return {
		open(response, cursor, dialect) {
			const { socket, req } = response;
			if (response.destroyed || closed || !socket) {
				cursor.close();
				if (response.destroyed) return;
				if (closed) throw new NexusError("unavailable", "the daemon is stopping; resume from the last offset");
				throw new NexusError("invalid", "a stream cannot be pipelined behind another request");
			}
			// HTTP/1.0 has no chunked coding: there the end of the connection is the end of the body.
			const plain = req.httpVersionMinor === 0;
			response.writeHead(200, { ...dialect.headers, ...(plain ? {} : { "Transfer-Encoding": "chunked" }) });
			response.flushHeaders();
			socket.setNoDelay(true);
			const reader = new Reader({
				response,
				socket,
				cursor,
				encode: plain ? (batch) => encoded(dialect.text(batch), excessBytes(batch.text)) : encoders.get(dialect)!,
				heartbeat: plain || dialect.heartbeat === "" ? dialect.heartbeat : framed(dialect.heartbeat, 0),
				log,
				gone: () => readers.delete(reader),
				stalled: () => stalled++,
			});
			readers.add(reader);
			if (dialect.opening !== "") socket.write(plain ? dialect.opening : framed(dialect.opening, 0));
			reader.pump();
		},
		heartbeat() {
			for (const reader of readers) reader.heartbeat();
		},
		cut() {
			closed = true;
			for (const reader of readers) reader.cut();
		},
		get count() {
			return readers.size;
		},
		get stalled() {
			return stalled;
		},
	};
}

interface ReaderParts {
	response: ServerResponse;
	socket: Socket;
	cursor: Cursor;
	encode: Encode;
	heartbeat: Encoded;
	log: Log;
	gone(): void;
	stalled(): void;
}

class Reader {
	readonly #parts: ReaderParts;
	readonly #socket: Socket;
	readonly #cursor: Cursor;
	readonly #encode: Encode;
	#room = true;
	/** The store is being read; the answer pumps on. */
	#reading = false;
	#done = false;
	/** Something was sent since the last heartbeat. */
	#active = true;

	constructor(parts: ReaderParts) {
		this.#parts = parts;
		this.#socket = parts.socket;
		this.#cursor = parts.cursor;
		this.#encode = parts.encode;
		parts.cursor.onWake(this.pump);
		parts.socket.on("drain", this.#onDrain);
		parts.response.on("close", this.#release);
		parts.response.on("timeout", this.#onTimeout);
	}

	readonly pump = (): void => {
		if (this.#reading || this.#done) return;
		try {
			while (this.#room) {
				const batch = this.#cursor.next();
				if (batch === undefined) {
					if (this.#cursor.ended) this.#finish();
					return;
				}
				if (batch instanceof Promise) {
					this.#await(batch);
					return;
				}
				this.#write(batch);
			}
		} catch (cause) {
			this.#fail(cause);
		}
	};

	#write(batch: Batch): void {
		this.#active = true;
		const data = this.#encode(batch);
		this.#room = typeof data === "string" ? this.#socket.write(data, "latin1") : this.#socket.write(data);
	}

	#await(reading: Promise<Batch | undefined>): void {
		this.#reading = true;
		reading.then(
			(batch) => {
				this.#reading = false;
				if (this.#done) return;
				if (batch) this.#write(batch);
				this.pump();
			},
			(cause: unknown) => this.#fail(cause),
		);
	}

	readonly #onDrain = (): void => {
		this.#room = true;
		this.pump();
	};

	/** The socket saw no progress for `stalledReaderMs`. Without data waiting that is no fault of the reader. */
	readonly #onTimeout = (): void => {
		if (this.#room) return;
		this.#parts.stalled();
		this.#parts.log.info({ offset: this.#cursor.offset }, "a reader that took nothing was disconnected");
		this.#socket.destroy();
	};

	heartbeat(): void {
		const idle = !this.#active;
		this.#active = false;
		if (idle && this.#room && !this.#done && this.#parts.heartbeat !== "") {
			this.#room = this.#socket.write(this.#parts.heartbeat);
		}
	}

	#finish(): void {
		this.#release();
		this.#parts.response.end();
	}

	cut(): void {
		this.#release();
		this.#socket.destroySoon();
	}

	/** After the first byte there is no status left to send: the cut makes the client resume, and then it gets the status. */
	#fail(cause: unknown): void {
		if (this.#done) return;
		const error = toNexusError(cause);
		const facts = { offset: this.#cursor.offset, code: error.code, error: error.message };
		if (error.code === "unavailable" || error.code === "expired") this.#parts.log.info(facts, "a stream was cut");
		else this.#parts.log.error(facts, "a stream could not be read");
		this.cut();
	}

	readonly #release = (): void => {
		if (this.#done) return;
		this.#done = true;
		this.#cursor.close();
		this.#socket.off("drain", this.#onDrain);
		this.#parts.response.off("timeout", this.#onTimeout);
		this.#parts.gone();
	};
}

/** A cursor that stops after an offset instead of following: for answers that have an end. */
export function upTo(cursor: Cursor, last: number): Cursor {
	const cutBatch = (batch: Batch | undefined): Batch | undefined => batch?.upTo(last);
	return {
		get offset() {
			return Math.min(cursor.offset, last);
		},
		get ended() {
			return cursor.offset >= last;
		},
		next() {
			if (cursor.offset >= last) return undefined;
			const batch = cursor.next();
			return batch instanceof Promise ? batch.then(cutBatch) : cutBatch(batch);
		},
		check: () => (cursor.offset >= last ? undefined : cursor.check()),
		onWake: (listener) => cursor.onWake(listener),
		close: () => cursor.close(),
	};
}
