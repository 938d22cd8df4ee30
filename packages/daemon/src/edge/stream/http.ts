/** HTTP answers that stream: a reader pulls while its socket has room, so a slow one costs one batch of memory (I6). */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type CloseMode, NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { Cursor } from "../../bus/bus.ts";
import { chunked, createEncoders, type Encoded, plain } from "./encoding.ts";
import type { Flusher } from "./flusher.ts";
import type { StreamFormat } from "./formats.ts";
import { type CloseReason, Pump, type Transport } from "./pump.ts";

export interface StreamResponse {
	cursor: Cursor;
	dialect: StreamFormat;
	/** As the endpoint declares it; undefined for an answer that is not a stream. */
	closes: CloseMode | undefined;
}

export type Readers = ReturnType<typeof createReaders>;

export function createReaders(log: Log, flusher: Flusher) {
	const readers = new Set<Pump<Encoded>>();
	const [chunkedEncoder, plainEncoder] = [createEncoders(chunked), createEncoders(plain)];
	let stalled = 0;
	let closed = false;
	return {
		/** Sends the headers, then everything the cursor gives. Throws before the first byte only (I9). */
		open(response: ServerResponse, { cursor, dialect, closes }: StreamResponse): void {
			const { socket, req } = response;
			if (response.destroyed || closed || !socket) {
				cursor.close();
				if (response.destroyed) return;
				if (closed) throw new NexusError("unavailable", "the daemon is stopping; resume from the last offset");
				throw new NexusError("invalid", "a stream cannot be pipelined behind another request");
			}
			const isPlain = req.httpVersionMinor === 0;
			response.writeHead(200, { ...dialect.headers, ...(isPlain ? {} : { "Transfer-Encoding": "chunked" }) });
			response.flushHeaders();
			socket.setNoDelay(true);
			const { pump } = new ResponseTransport(response, socket, flusher, (reason) => {
				readers.delete(pump);
				if (reason !== "stalled") return;
				stalled++;
				log.info({ offset: cursor.offset }, "a reader that took nothing was disconnected");
			});
			readers.add(pump);
			pump.add({
				cursor,
				encoder: isPlain ? plainEncoder(dialect) : chunkedEncoder(dialect),
				closes,
				ended: () => pump.close("ended"),
				failed(cause) {
					logFailure(log, cause, cursor.offset);
					pump.close("failed");
				},
			});
		},
		heartbeat(): void {
			for (const reader of readers) reader.heartbeat();
		},
		/** Cuts every reader, for good, without a terminal: the log tells the truth to who resumes (I3). */
		cut(): void {
			closed = true;
			for (const reader of readers) reader.close("stopping");
		},
		get count(): number {
			return readers.size;
		},
		get stalled(): number {
			return stalled;
		},
	};
}

/** The socket of a response, until the answer is over. */
class ResponseTransport implements Transport<Encoded> {
	readonly pump: Pump<Encoded>;
	readonly #socket: Socket;
	readonly #response: ServerResponse;
	readonly #over: (reason?: CloseReason) => void;
	/** The kernel has not taken all of the last write. */
	#isFull = false;

	constructor(response: ServerResponse, socket: Socket, flusher: Flusher, over: (reason?: CloseReason) => void) {
		this.pump = new Pump(this, flusher);
		this.#response = response;
		this.#socket = socket;
		this.#over = over;
		response.on("timeout", this.pump.timedOut);
		response.on("close", () => {
			this.pump.gone();
			this.#release();
		});
	}

	get waiting(): boolean {
		return this.#socket.writableLength > 0;
	}

	/** Full as soon as the kernel does not take everything: a reader that does not read holds one batch, not a buffer of them (I6). */
	write(data: Encoded): boolean {
		if (typeof data === "string") this.#socket.write(data, "latin1", this.#taken);
		else this.#socket.write(data, this.#taken);
		this.#isFull = this.waiting;
		return !this.#isFull;
	}

	readonly #taken = (cause?: Error | null): void => {
		if (!this.#isFull || cause || this.waiting) return;
		this.#isFull = false;
		this.pump.drained();
	};

	close(reason: CloseReason): void {
		this.#release(reason);
		if (reason === "ended") this.#response.end();
		else if (reason === "stalled") this.#socket.destroy();
		// After the first byte there is no status left to send: the cut makes the client resume, and then it gets the status.
		else this.#socket.destroySoon();
	}

	/** A connection that is kept alive serves other answers after this one. */
	#release(reason?: CloseReason): void {
		this.#response.off("timeout", this.pump.timedOut);
		this.#over(reason);
	}
}

function logFailure(log: Log, cause: unknown, offset: number): void {
	const error = toNexusError(cause);
	const facts = { offset, code: error.code, error: error.message };
	if (error.code === "unavailable" || error.code === "expired") log.info(facts, "a stream was cut");
	else log.error(facts, "a stream could not be read");
}
