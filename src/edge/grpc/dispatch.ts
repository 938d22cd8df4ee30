/** From an HTTP request to a method and back: gRPC, gRPC-web and Connect by one router. Loaded by the first call. */

import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest, ServerHttp2Stream } from "node:http2";
import { createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { compressionGzip, universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import type { CloseMode } from "../../protocol/protocol.ts";
import type { Clock } from "../../std/clock.ts";
import { jsonText } from "../body.ts";
import { type Caller, principalOfCaller, whenEnded } from "../gate.ts";
import type { EdgeLimits } from "../port.ts";
import { type AdmitParts, admit, CALL } from "./admit.ts";
import { type RpcResponse, refuseUnknown, reset, send } from "./answer.ts";
import { refusal, revoked, stopping } from "./errors.ts";
import { guarded } from "./guard.ts";
import { addServices } from "./routes.ts";
import { PRINCIPAL, type RpcDeps } from "./rpc.ts";

export type RpcRequest = IncomingMessage | Http2ServerRequest;
/** Answers one call, with a status if need be. Never rejects. */
export type Dispatch = (request: RpcRequest, response: RpcResponse, caller: Caller) => Promise<void>;

export interface DispatchParts extends RpcDeps, AdmitParts {
	clock: Clock;
}

export interface Dispatcher {
	answer: Dispatch;
	/** Refuses a call of gRPC without a token: nothing of it is read. */
	refuse(stream: ServerHttp2Stream, contentType: string): void;
	/** Cuts the streams of these modes, or all: CANCELLED, with the reason STOPPING. */
	cut(modes?: readonly (CloseMode | undefined)[]): void;
}

export function createDispatcher(parts: DispatchParts): Dispatcher {
	const { limits, log } = parts;
	const jsonOptions = {
		ignoreUnknownFields: true,
		// The one place where Connect takes the text of a JSON message.
		textDecoder: { decode: (bytes: Uint8Array) => jsonText(bytes, limits) },
	};
	const router = createConnectRouter({
		readMaxBytes: limits.grpcReadBytesMax,
		writeMaxBytes: limits.grpcWriteBytesMax,
		// Requests may be compressed; answers are not: tokens are small, and the time would be taken from every other reader.
		acceptCompression: [compressionGzip],
		compressMinBytes: Number.MAX_SAFE_INTEGER,
		jsonOptions,
		requestGate: (context) => admit(context, parts),
	});
	addServices(guarded(router, log), parts);
	const paths = new Map(router.handlers.map((handler): [string, UniversalHandler] => [handler.requestPath, handler]));
	const answer: Dispatch = async (request, response, caller) => {
		const handler = paths.get((request.url ?? "").split("?", 1)[0]!);
		try {
			if (handler) await call(handler, request, response, caller, parts);
			else refuseUnknown(request, response);
		} catch (cause) {
			log.error({ err: cause, path: request.url }, "a remote procedure could not be answered");
			reset(response);
		}
	};
	const unauthenticated = Object.fromEntries(
		setTrailerStatus(new Headers(), refusal("unauthenticated", "send `authorization: Bearer <token>`")),
	);
	return {
		answer,
		refuse(stream, contentType) {
			if (stream.destroyed || stream.closed) return;
			stream.respond({ ":status": 200, "content-type": contentType, ...unauthenticated }, { endStream: true });
			// Its body is still coming.
			stream.close();
		},
		cut: (modes) => parts.streams.cut(stopping, modes),
	};
}

async function call(
	handler: UniversalHandler,
	request: RpcRequest,
	response: RpcResponse,
	caller: Caller,
	{ limits, clock }: Pick<DispatchParts, "limits" | "clock">,
): Promise<void> {
	// One of both kinds is wanted, and told apart at run time; the overloads do not know the union.
	const universal = universalRequestFromNodeRequest(
		request as IncomingMessage,
		response as never,
		undefined,
		undefined,
	);
	const controller = new AbortController();
	universal.signal.addEventListener("abort", () => controller.abort(universal.signal.reason), { once: true });
	const contextValues = createContextValues().set(CALL, { response, controller });
	if (caller.proof) contextValues.set(PRINCIPAL, principalOfCaller(caller));
	whenEnded(caller, response, () => controller.abort(revoked()));
	const body = caller.proof ? universal.body : boundedBody(universal, limits, clock);
	await send(await handler({ ...universal, body, signal: controller.signal, contextValues }), response);
	// The daemon does not wait for the rest of the body.
	if (!caller.proof && "stream" in request) clock.after(LINGER_MS, () => request.stream.close());
}

/** What a caller without a token sends: little, within seconds, and as it is (I11). */
async function* boundedBody(
	{ body, header }: UniversalServerRequest,
	{ tokenlessBodyBytesMax, tokenlessBodyTimeoutMs }: EdgeLimits,
	clock: Clock,
): AsyncIterable<Uint8Array> {
	if (ENCODINGS.some((name) => (header.get(name) ?? "identity") !== "identity"))
		throw refusal("invalid", "a call without a token cannot be compressed");
	const tooLarge = () =>
		refusal("too_large", `the body of a call without a token may have ${tokenlessBodyBytesMax} bytes at most`);
	if (Number(header.get("content-length")) > tokenlessBodyBytesMax) throw tooLarge();
	const late = Promise.withResolvers<never>();
	late.promise.catch(() => {});
	const cancel = clock.after(tokenlessBodyTimeoutMs, () =>
		late.reject(refusal("timeout", `the body did not arrive within ${tokenlessBodyTimeoutMs} ms`)),
	);
	const inner = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
	let bytes = 0;
	try {
		for (;;) {
			const next = await Promise.race([inner.next(), late.promise]);
			if (next.done) return;
			bytes += next.value.byteLength;
			if (bytes > tokenlessBodyBytesMax) throw tooLarge();
			yield next.value;
		}
	} finally {
		cancel();
	}
}

/** Time for the answer to be written. */
const LINGER_MS = 1000;

const ENCODINGS = ["grpc-encoding", "content-encoding", "connect-content-encoding"];
