/**
 * A stream of a remote procedure past Connect's pipeline, in which every message passes through some twenty promises. Connect parses the
 * request, and writes the end and the errors; between them, `outlet.ts` pulls messages from a log, this file encodes each of them once and
 * writes it to the connection, and `response.ts` counts the bytes. The door of this folder.
 */

import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "@nexus-stream/protocol";
import type { OutgoingResponse } from "./response.ts";

export { filtered, Outlet, type OutletStream } from "./outlet.ts";
export {
	endLate,
	keepOpen,
	OutgoingResponse,
	type RpcRequest,
	type RpcResponse,
	refuseUnknown,
	reset,
	resetStalled,
	send,
	sendHeaders,
	whenIdle,
} from "./response.ts";

export interface StreamParts {
	/** Undefined for server reflection, which is a dialogue. */
	closes: CloseMode | undefined;
	controller: AbortController;
	/** Sends the headers, so that a client knows that it is established before the first message. */
	establish(): void;
	/** How messages are written without Connect, if they can be. */
	direct: Direct | undefined;
	/** The error that a client sees, or the cut if the signal has aborted. */
	shown(cause: unknown, signal: AbortSignal): ConnectError;
}

export class OpenStream {
	readonly closes: CloseMode | undefined;
	readonly #parts: StreamParts;

	constructor(parts: StreamParts) {
		this.closes = parts.closes;
		this.#parts = parts;
	}

	/** Nothing is at hand and the reader waits. */
	establish(): void {
		this.#parts.establish();
	}

	/** A cut is an error: the reader must not take it for an end (Z7). */
	cut(cause: ConnectError): void {
		this.#parts.controller.abort(cause);
	}

	/** A method's messages, for Connect. A cut reaches a method that waits; if the method then merely returns, the stream still fails. */
	carry<Message>(begin: () => AsyncIterable<Message>, signal: AbortSignal): AsyncIterable<Message> {
		let inner: AsyncIterator<Message>;
		try {
			inner = begin()[Symbol.asyncIterator]();
		} catch (cause) {
			throw this.#parts.shown(cause, signal);
		}
		let refuse: ((cause: unknown) => void) | undefined;
		const shown = (cause?: unknown) => this.#parts.shown(cause, signal);
		const leave = () => void inner.return?.().catch(() => {});
		signal.addEventListener(
			"abort",
			() => {
				refuse?.(shown());
				leave();
			},
			{ once: true },
		);
		const iterator: AsyncIterator<Message> = {
			next: () =>
				new Promise((resolve, reject) => {
					refuse = reject;
					const give = (result: IteratorResult<Message>) => {
						refuse = undefined;
						if (result.done && signal.aborted) reject(shown());
						else resolve(result);
					};
					const fail = (cause: unknown) => reject(shown(cause));
					const take = (result: IteratorResult<Message>) => {
						if (result.done || signal.aborted) give(result);
						else this.#write(result, give, fail, pull);
					};
					const pull = () => {
						if (signal.aborted) reject(shown());
						else inner.next().then(take, fail);
					};
					pull();
				}),
			async return() {
				leave();
				return { done: true, value: undefined };
			},
		};
		return { [Symbol.asyncIterator]: () => iterator };
	}

	/** Writes a message and continues, or gives it to Connect, which keeps a message in its pipeline until the next one. */
	#write<Message>(
		result: IteratorYieldResult<Message>,
		give: (result: IteratorResult<Message>) => void,
		fail: (cause: unknown) => void,
		pull: () => void,
	): void {
		const { direct } = this.#parts;
		try {
			if (direct) this.establish();
			const room = direct?.write(result.value as Readonly<Record<string, unknown>>);
			if (room === undefined) give(result);
			else if (room) pull();
			else direct?.whenDrained(pull);
		} catch (cause) {
			fail(cause);
		}
	}
}

/** A stream that takes time to open. A generator around it would cost each of its messages three promises more. */
export function opening<Message>(open: () => Promise<AsyncIterable<Message>>): AsyncIterable<Message> {
	let inner: AsyncIterator<Message> | undefined;
	let isLeft = false;
	const begin = async (): Promise<IteratorResult<Message>> => {
		const opened = (await open())[Symbol.asyncIterator]();
		if (isLeft) await opened.return?.();
		inner = opened;
		return opened.next();
	};
	const iterator: AsyncIterator<Message> = {
		next: () => (inner ? inner.next() : begin()),
		async return() {
			isLeft = true;
			await inner?.return?.();
			return { done: true, value: undefined };
		},
	};
	return { [Symbol.asyncIterator]: () => iterator };
}

export interface Direct {
	/** False: full until drained. Undefined: not written, because it is too large; Connect has the error for it. */
	write(message: Readonly<Record<string, unknown>>): boolean | undefined;
	whenDrained(go: () => void): void;
}

/** Unsent bytes of a connection: another message is written while there are fewer than this. */
const WAITING_BYTES_MAX = 16 * 1024;
/** Where a message keeps its bytes: one that several readers get is encoded for the first of them. */
const BYTES = Symbol("bytes");
/** A message's head in gRPC, gRPC-web and Connect alike: no flags, as answers are not compressed, and the length. */
const HEAD_BYTES = 5;
/** In which messages are protobuf; the others have JSON. */
const BINARY = /^application\/(grpc|grpc\+proto|grpc-web|grpc-web\+proto|connect\+proto)$/;

export function directTo(
	outgoing: Pick<OutgoingResponse, "write" | "waitingBytes">,
	schema: DescMessage,
	contentType: string,
	bytesMax: number,
): Direct | undefined {
	if (!BINARY.test(contentType)) return undefined;
	let isFull = false;
	let drained = () => {};
	const taken = (cause?: Error | null) => {
		if (!isFull || cause || outgoing.waitingBytes >= WAITING_BYTES_MAX) return;
		isFull = false;
		drained();
	};
	return {
		write(message: Spelled) {
			const chunk = message[BYTES] ?? spell(schema, message);
			message[BYTES] = chunk;
			if (chunk.length - HEAD_BYTES > bytesMax) return undefined;
			outgoing.write(chunk, taken);
			isFull = outgoing.waitingBytes >= WAITING_BYTES_MAX;
			return !isFull;
		},
		whenDrained(go) {
			drained = go;
		},
	};
}

type Spelled = Readonly<Record<string, unknown>> & { [BYTES]?: Buffer };

function spell(schema: DescMessage, message: Readonly<Record<string, unknown>>): Buffer {
	const bytes = toBinary(schema, create(schema, message));
	const chunk = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
	chunk[0] = 0;
	chunk.writeUInt32BE(bytes.length, 1);
	chunk.set(bytes, HEAD_BYTES);
	return chunk;
}
