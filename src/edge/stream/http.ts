/** HTTP answers that stream: a reader pulls while its socket has room, so a slow one costs one batch of memory (I6). */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Cursor } from "../../bus/bus.ts";
import { type CloseMode, NexusError, toNexusError } from "../../protocol/protocol.ts";
import type { Log } from "../../std/log.ts";
import type { Dialect } from "./dialect.ts";
import { chunked, createEncoders, type Encoded, plain } from "./encoding.ts";
import { type CloseReason, Pump, type Transport } from "./pump.ts";

export interface Answer {
	cursor: Cursor;
	dialect: Dialect;
	/** As the endpoint declares it; undefined for an answer that is no stream. */
	closes: CloseMode | undefined;
}

export interface Readers {
	/** Sends the headers, then everything the cursor gives. Throws before the first byte only (I9). */
	open(response: ServerResponse, answer: Answer): void;
	heartbeat(): void;
	/** Cuts every reader, for good, without a terminal: the log tells the truth to who resumes (I3). */
	cut(): void;
	readonly count: number;
	readonly stalled: number;
}

export function createReaders(log: Log): Readers {
	const readers = new Set<Pump<Encoded>>();
	const [chunkedEncoder, plainEncoder] = [createEncoders(chunked), createEncoders(plain)];
	let stalled = 0;
	let closed = false;
	return {
		open(response, { cursor, dialect, closes }) {
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
			const pump = serveOn(response, socket, (reason) => {
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
		heartbeat() {
			for (const reader of readers) reader.heartbeat();
		},
		cut() {
			closed = true;
			for (const reader of readers) reader.close("stopping");
		},
		get count() {
			return readers.size;
		},
		get stalled() {
			return stalled;
		},
	};
}

/** A pump whose transport is the response's socket until the answer is over. */
function serveOn(response: ServerResponse, socket: Socket, over: (reason?: CloseReason) => void): Pump<Encoded> {
	const release = (reason?: CloseReason) => {
		// A connection that is kept alive serves other answers after this one.
		socket.off("drain", pump.drained);
		response.off("timeout", pump.timedOut);
		over(reason);
	};
	const transport: Transport<Encoded> = {
		write: (data) => (typeof data === "string" ? socket.write(data, "latin1") : socket.write(data)),
		get waiting() {
			return socket.writableLength > 0;
		},
		close(reason) {
			release(reason);
			if (reason === "ended") response.end();
			else if (reason === "stalled") socket.destroy();
			// After the first byte there is no status left to send: the cut makes the client resume, and then it gets the status.
			else socket.destroySoon();
		},
	};
	const pump = new Pump(transport);
	socket.on("drain", pump.drained);
	response.on("timeout", pump.timedOut);
	response.on("close", () => {
		pump.gone();
		release();
	});
	return pump;
}

function logFailure(log: Log, cause: unknown, offset: number): void {
	const error = toNexusError(cause);
	const facts = { offset, code: error.code, error: error.message };
	if (error.code === "unavailable" || error.code === "expired") log.info(facts, "a stream was cut");
	else log.error(facts, "a stream could not be read");
}
