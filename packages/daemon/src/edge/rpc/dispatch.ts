/** From an HTTP request to a method and back: gRPC, gRPC-web and Connect by one router. Loaded by the first call. */

import type { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { compressionGzip, universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import type { CloseMode } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { jsonText } from "../http/body.ts";
import { type Caller, principalOfCaller, whenEnded } from "../http/gate.ts";
import type { EdgeLimits } from "../port.ts";
import { createRest } from "../rest/rest.ts";
import type { Readers } from "../stream/stream.ts";
import { type AdmitParts, admit, CALL } from "./admit.ts";
import { refusal, revoked, stopping, toConnectError } from "./errors.ts";
import {
	endLate,
	OutgoingResponse,
	type RpcRequest,
	type RpcResponse,
	refuseUnknown,
	reset,
	resetStalled,
	send,
	whenIdle,
} from "./fast-stream/fast-stream.ts";
import { addServices, type MethodSources } from "./routes.ts";
import { type Implementation, PRINCIPAL, SERVING } from "./rpc.ts";

/** Answers one call, with a status if need be. Never rejects. */
export type Dispatch = (request: RpcRequest, response: RpcResponse, caller: Caller) => Promise<void>;

export interface DispatchParts extends MethodSources, AdmitParts {
	readers: Readers;
}

export type Dispatcher = ReturnType<typeof createDispatcher>;

export function createDispatcher(parts: DispatchParts) {
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
	const methods = new Map<DescMethod, Implementation>();
	addServices(guarded(router, methods, log), parts);
	const paths = new Map(router.handlers.map((handler): [string, UniversalHandler] => [handler.requestPath, handler]));
	const answer: Dispatch = async (request, response, caller) => {
		const handler = paths.get((request.url ?? "").split("?", 1)[0]!);
		try {
			const outgoing = watched(handler, { request, response, caller }, parts);
			if (handler) await call(handler, { request, response, caller, outgoing }, limits);
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
		/** The same procedures over plain HTTP. */
		rest: createRest({ ...parts, methods }),
		/** Refuses a call of gRPC without a token: nothing of it is read. */
		refuse(stream: ServerHttp2Stream, contentType: string): void {
			if (stream.destroyed || stream.closed) return;
			stream.respond({ ":status": 200, "content-type": contentType, ...unauthenticated }, { endStream: true });
			// Its body is still coming.
			stream.close();
		},
		/** Cuts the streams of these modes, or all: CANCELLED, with the reason STOPPING. */
		cut: (modes?: readonly (CloseMode | undefined)[]) => parts.streams.cut(stopping, modes),
	};
}

/** A call as it arrived. */
interface Arrival {
	request: RpcRequest;
	response: RpcResponse;
	caller: Caller;
	outgoing: OutgoingResponse;
}

async function call(
	handler: UniversalHandler,
	{ request, response, caller, outgoing }: Arrival,
	limits: EdgeLimits,
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
	const contextValues = createContextValues().set(CALL, { response, outgoing, controller });
	if (caller.proof) contextValues.set(PRINCIPAL, principalOfCaller(caller));
	whenEnded(caller, response, () => controller.abort(revoked()));
	const body = caller.proof ? universal.body : smallBody(universal, limits);
	await send(await handler({ ...universal, body, signal: controller.signal, contextValues }), response, outgoing);
}

const ENCODINGS = ["grpc-encoding", "content-encoding", "connect-content-encoding"];

/** The body of a caller without a token: small and uncompressed (I11). */
async function* smallBody(
	{ body, header }: UniversalServerRequest,
	{ tokenlessBodyBytesMax: bytesMax }: EdgeLimits,
): AsyncIterable<Uint8Array> {
	if (ENCODINGS.some((name) => (header.get(name) ?? "identity") !== "identity"))
		throw refusal("invalid", "a call without a token cannot be compressed");
	let bytes = Number(header.get("content-length"));
	const check = () => {
		if (bytes > bytesMax)
			throw refusal("too_large", `the body of a call without a token may have ${bytesMax} bytes at most`);
	};
	check();
	bytes = 0;
	for await (const part of body as AsyncIterable<Uint8Array>) {
		bytes += part.byteLength;
		check();
		yield part;
	}
}

/** Its request has to arrive, and its client has to take the answer: otherwise the call does not keep its place (P6.15). */
function watched(
	handler: UniversalHandler | undefined,
	{ request, response, caller }: Omit<Arrival, "outgoing">,
	{ limits, clock, streams }: DispatchParts,
): OutgoingResponse {
	const outgoing = new OutgoingResponse(response, () => resetStalled(response));
	response.once("close", streams.watch(outgoing));
	whenIdle(response, limits.stalledReaderMs, () => {
		if (outgoing.waitingBytes > 0) streams.stall(outgoing);
	});
	if (handler?.method.methodKind === "bidi_streaming") return outgoing;
	const { requestTimeoutMs, tokenlessBodyTimeoutMs } = limits;
	const arrivalMs = caller.proof ? requestTimeoutMs : Math.min(requestTimeoutMs, tokenlessBodyTimeoutMs);
	response.once(
		"close",
		clock.after(arrivalMs, () => endLate(request, response, arrivalMs)),
	);
	return outgoing;
}

type Router = Pick<ConnectRouter, "service">;

/**
 * Every method behind one wrapper: its errors become statuses, and the end of its stream is what it says (Z7). `methods` gets every method without its wrapper, for callers that are not Connect.
 */
function guarded(router: Router, methods: Map<DescMethod, Implementation>, log: Log): Router {
	return {
		service(description, implementation) {
			const own = implementation as Readonly<Record<string, Implementation | undefined>>;
			const wrapped: Record<string, Implementation> = {};
			for (const method of description.methods) {
				const found = own[method.localName]?.bind(own);
				if (!found) continue;
				methods.set(method, found);
				wrapped[method.localName] = method.methodKind === "unary" ? unary(found, log) : streaming(found);
			}
			return router.service(description, wrapped as typeof implementation);
		},
	};
}

const unary =
	(method: Implementation, log: Log): Implementation =>
	async (request, context) => {
		try {
			return await keptTime(method(request, context) as Promise<object>, context.signal);
		} catch (cause) {
			throw toConnectError(cause, log, context.signal);
		}
	};

/** Answers a caller as soon as its deadline passes or it is cut; the method keeps running without it. */
function keptTime<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const cut = () => reject(signal.reason as Error);
		signal.addEventListener("abort", cut, { once: true });
		if (signal.aborted) cut();
		Promise.resolve(answer)
			.then(resolve, reject)
			.finally(() => signal.removeEventListener("abort", cut));
	});
}

const streaming =
	(method: Implementation): Implementation =>
	(request, context) =>
		context.values.get(SERVING)!.stream.carry(() => method(request, context) as AsyncIterable<object>, context.signal);
