/** Writes what Connect answers to the HTTP response, with back-pressure; without a listener for each message. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

export type RpcResponse = ServerResponse | Http2ServerResponse;

/** The two kinds of response differ in nothing that is used here, but their methods have overloads that do not agree. */
interface Writable {
	readonly headersSent: boolean;
	writeHead(status: number, headers: Record<string, string>): unknown;
	flushHeaders(): void;
	write(chunk: Uint8Array): boolean;
	addTrailers(trailers: Record<string, string>): void;
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
export async function send(answer: UniversalServerResponse, response: RpcResponse): Promise<void> {
	const writable = response as Writable;
	let gone = false;
	let wake = () => {};
	const drained = () => wake();
	writable.on("drain", drained);
	writable.on("close", () => {
		gone = true;
		wake();
	});
	// What breaks is told by `close`.
	writable.on("error", drained);
	const begin = () => {
		if (!writable.headersSent && !gone) writable.writeHead(answer.status, Object.fromEntries(answer.header ?? []));
	};
	for await (const chunk of answer.body ?? []) {
		begin();
		if (gone) return;
		if (!writable.write(chunk) && !gone) await new Promise<void>((resolve) => (wake = resolve));
	}
	begin();
	if (gone) return;
	if (answer.trailer) writable.addTrailers(Object.fromEntries(answer.trailer));
	writable.end();
}

/** HTTP/1.1 has no frame that says nothing: TCP finds out whether the peer is there, and a silent stream is no stalled one. */
export function keepOpen(response: RpcResponse, everyMs: number): void {
	if ("stream" in response) return;
	response.on("timeout", () => {});
	response.socket?.setKeepAlive(true, everyMs);
}

/** What has no method here, as gRPC says it; others are told by the status of HTTP. */
export function refuseUnknown(request: IncomingMessage | Http2ServerRequest, response: RpcResponse): void {
	const writable = response as Writable;
	const type = request.headers["content-type"] ?? "";
	if (type.startsWith("application/grpc")) {
		const message = encodeURIComponent("there is no such method");
		writable.writeHead(200, { "content-type": type, "grpc-status": "12", "grpc-message": message });
	} else writable.writeHead(404, { "content-type": "text/plain" });
	writable.end();
}

/** Nothing more can be said. */
export function reset(response: RpcResponse, code: number = constants.NGHTTP2_INTERNAL_ERROR): void {
	if ("stream" in response) response.stream?.close(code);
	else response.destroy();
}

/** A client of gRPC reads it as RESOURCE_EXHAUSTED (Z8). */
export const resetStalled = (response: RpcResponse): void => reset(response, constants.NGHTTP2_ENHANCE_YOUR_CALM);
