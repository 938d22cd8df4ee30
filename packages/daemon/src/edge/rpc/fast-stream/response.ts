/** The HTTP response of a call: writes what Connect answers, with back-pressure, and sees whether the client takes any of it (Z8). */

import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Session } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { type ErrorCode, grpcStatusOf, httpStatusOf, reasonOf } from "@nexus-stream/protocol";
import { REASON_TRAILER } from "../errors.ts";

export type RpcRequest = IncomingMessage | Http2ServerRequest;
export type RpcResponse = ServerResponse | Http2ServerResponse;

/** The two kinds of response differ in nothing that is used here, but their methods have overloads that do not agree. */
interface Writable {
	readonly headersSent: boolean;
	readonly writableEnded: boolean;
	readonly writableLength: number;
	statusCode: number;
	setHeader(name: string, value: string): unknown;
	writeHead(status: number, headers: Record<string, string>): unknown;
	flushHeaders(): void;
	addTrailers(trailers: Record<string, string>): void;
	write(chunk: Uint8Array, taken?: (cause?: Error | null) => void): boolean;
	end(): unknown;
	on(event: "drain" | "close" | "error", listener: () => void): unknown;
}

/** Sends the headers alone: the first message may be a long time coming. */
export function sendHeaders(response: RpcResponse, headers: Headers): void {
	const writable = response as Writable;
	if (writable.headersSent) return;
	writable.writeHead(200, Object.fromEntries(headers));
	writable.flushHeaders();
}

/** Resolves when everything was handed to the connection, or the client went away. */
export async function send(
	answer: UniversalServerResponse,
	response: RpcResponse,
	outgoing: OutgoingResponse,
): Promise<void> {
	const writable = response as Writable;
	// It was refused meanwhile, because its request did not arrive.
	if (writable.writableEnded) return;
	let gone = false;
	let wake = () => {};
	const drained = () => wake();
	writable.on("drain", drained);
	writable.on("close", () => {
		gone = true;
		wake();
	});
	// `close` reports a broken connection.
	writable.on("error", drained);
	const begin = () => {
		if (!writable.headersSent && !gone) writable.writeHead(answer.status, Object.fromEntries(answer.header ?? []));
	};
	for await (const chunk of answer.body ?? []) {
		begin();
		if (gone) return;
		if (!outgoing.write(chunk) && !gone) await new Promise<void>((resolve) => (wake = resolve));
	}
	begin();
	if (gone) return;
	if (answer.trailer) writable.addTrailers(Object.fromEntries(answer.trailer));
	writable.end();
}

/** HTTP/1.1 has no frame that says nothing: TCP finds out whether the peer is there. */
export function keepOpen(response: RpcResponse, everyMs: number): void {
	if (!("stream" in response)) response.socket?.setKeepAlive(true, everyMs);
}

/** For HTTP/1.1, whose socket knows whether the peer takes bytes. An answer that has nothing to send is not stalled. */
export function whenIdle(response: RpcResponse, idleMs: number, look: () => void): void {
	if ("stream" in response) return;
	response.setTimeout(idleMs, look);
}

/** Has the whole request arrived? With HTTP/2 unread bytes count, too. */
const isWhole = (request: RpcRequest): boolean =>
	request.complete || ("stream" in request && request.stream.state?.remoteClose === 1);

/** Answers without a method: headers alone, which gRPC calls Trailers-Only. Others than gRPC get the status of HTTP. */
function refuse(request: RpcRequest, response: RpcResponse, code: ErrorCode, status: number, message: string): void {
	const writable = response as Writable;
	const type = request.headers["content-type"] ?? "";
	const isGrpc = type.startsWith("application/grpc");
	writable.statusCode = isGrpc ? 200 : httpStatusOf(code);
	writable.setHeader("content-type", isGrpc ? type : "text/plain");
	if (isGrpc) {
		writable.setHeader("grpc-status", String(status));
		writable.setHeader("grpc-message", encodeURIComponent(message));
		writable.setHeader(REASON_TRAILER, `REASON_CODE_${reasonOf(code)}`);
	}
	writable.end();
}

const UNIMPLEMENTED = 12;

export const refuseUnknown = (request: RpcRequest, response: RpcResponse): void =>
	refuse(request, response, "not_found", UNIMPLEMENTED, "there is no such method");

/** A request that is not whole in time is refused; one that was answered meanwhile loses its place, too (P6.15). */
export function endLate(request: RpcRequest, response: RpcResponse, ms: number): void {
	const writable = response as Writable;
	if (isWhole(request)) return;
	if (!writable.headersSent)
		refuse(request, response, "timeout", grpcStatusOf("timeout"), `the request did not arrive within ${ms} ms`);
	if (writable.writableEnded) closeAfterEnd(response);
	else reset(response, constants.NGHTTP2_CANCEL);
}

/** Signals a client that still sends its request that the rest is not needed. */
function closeAfterEnd(response: RpcResponse): void {
	if ("stream" in response) response.stream?.close(constants.NGHTTP2_NO_ERROR);
}

/** Nothing more can be said. */
export function reset(response: RpcResponse, code: number = constants.NGHTTP2_INTERNAL_ERROR): void {
	if ("stream" in response) response.stream?.close(code);
	else response.destroy();
}

/** A client of gRPC reads it as RESOURCE_EXHAUSTED (Z8). */
export const resetStalled = (response: RpcResponse): void => reset(response, constants.NGHTTP2_ENHANCE_YOUR_CALM);

/** The first look at something that waits is where its time begins. */
const NOT_WAITING = -1;

export class OutgoingResponse {
	readonly #response: RpcResponse;
	readonly #reset: () => void;
	#writtenBytes = 0;
	/** How many of them the client had taken at the last look. */
	#takenBytes = 0;
	/** Looks in a row at which it had taken nothing more. */
	#stillLooks = NOT_WAITING;
	/** Called when it is reset because its client took nothing. */
	onStalled: () => void = () => {};

	/** `reset` ends the HTTP stream without trailers: a reader that does not read could not get them (Z8). */
	constructor(response: RpcResponse, reset: () => void) {
		this.#response = response;
		this.#reset = reset;
	}

	/** The HTTP/2 session; undefined for HTTP/1.1, whose socket is watched by its own time-out. */
	get session(): ServerHttp2Session | undefined {
		return "stream" in this.#response ? (this.#response.stream?.session as ServerHttp2Session | undefined) : undefined;
	}

	/** Bytes that the connection has not taken yet. */
	get waitingBytes(): number {
		return (this.#response as Writable).writableLength;
	}

	write(chunk: Uint8Array, taken?: (cause?: Error | null) => void): boolean {
		this.#writtenBytes += chunk.length;
		return (this.#response as Writable).write(chunk, taken);
	}

	/** Whether bytes wait, and whether the client took some since the last look. */
	look(): { isWaiting: boolean; hasMoved: boolean } {
		const { waitingBytes } = this;
		const takenBytes = this.#writtenBytes - waitingBytes;
		const hasMoved = takenBytes !== this.#takenBytes;
		this.#takenBytes = takenBytes;
		if (waitingBytes === 0) this.#stillLooks = NOT_WAITING;
		else if (hasMoved) this.excuse();
		return { isWaiting: waitingBytes > 0, hasMoved };
	}

	/** After a look at which bytes waited and none had moved; true once that was so many times in a row. */
	isStalled(looksMax: number): boolean {
		return ++this.#stillLooks >= looksMax;
	}

	/** It counts as moving. */
	excuse(): void {
		this.#stillLooks = 0;
	}

	reset(): void {
		this.onStalled();
		this.#reset();
	}
}
