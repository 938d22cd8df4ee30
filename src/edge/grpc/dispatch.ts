/** From an HTTP request to a method and back: gRPC, gRPC-web and Connect by one router. Loaded by the first call. */

import type { IncomingMessage } from "node:http";
import { createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { compressionGzip, universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import type { CloseMode } from "../../protocol/protocol.ts";
import { type Caller, principalOfCaller, whenEnded } from "../gate.ts";
import { type AdmitParts, admit, CALL } from "./admit.ts";
import {
	endLate,
	type RpcRequest,
	type RpcResponse,
	refuseUnknown,
	reset,
	resetStalled,
	send,
	whenIdle,
} from "./answer.ts";
import { revoked, stopping } from "./errors.ts";
import { guarded } from "./guard.ts";
import { Outgoing } from "./outgoing.ts";
import { addServices } from "./routes.ts";
import { PRINCIPAL, type RpcDeps } from "./rpc.ts";

export type { RpcRequest };
/** Answers one call, with a status if need be. Never rejects. */
export type Dispatch = (request: RpcRequest, response: RpcResponse, caller: Caller) => Promise<void>;

export interface DispatchParts extends RpcDeps, AdmitParts {}

export interface Dispatcher {
	answer: Dispatch;
	/** Cuts the streams of these modes, or all: CANCELLED, with the reason STOPPING. */
	cut(modes?: readonly (CloseMode | undefined)[]): void;
}

export function createDispatcher(parts: DispatchParts): Dispatcher {
	const { limits, log } = parts;
	const router = createConnectRouter({
		readMaxBytes: limits.grpcReadBytesMax,
		writeMaxBytes: limits.grpcWriteBytesMax,
		// Requests may be compressed; answers are not: tokens are small, and the time would be taken from every other reader.
		acceptCompression: [compressionGzip],
		compressMinBytes: Number.MAX_SAFE_INTEGER,
		requestGate: (context) => admit(context, parts),
	});
	addServices(guarded(router, log), parts);
	const paths = new Map(router.handlers.map((handler): [string, UniversalHandler] => [handler.requestPath, handler]));
	const answer: Dispatch = async (request, response, caller) => {
		const handler = paths.get((request.url ?? "").split("?", 1)[0]!);
		try {
			const outgoing = watched(handler, request, response, parts);
			if (handler) await call(handler, { request, response, caller, outgoing });
			else refuseUnknown(request, response);
		} catch (cause) {
			log.error({ err: cause, path: request.url }, "a remote procedure could not be answered");
			reset(response);
		}
	};
	return { answer, cut: (modes) => parts.streams.cut(stopping, modes) };
}

/** A call as it arrived. */
interface Arrival {
	request: RpcRequest;
	response: RpcResponse;
	caller: Caller;
	outgoing: Outgoing;
}

async function call(handler: UniversalHandler, { request, response, caller, outgoing }: Arrival): Promise<void> {
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
	await send(await handler({ ...universal, signal: controller.signal, contextValues }), response, outgoing);
}

/** Its request has to arrive, and its client has to take the answer: otherwise the call does not keep its place (P6.15). */
function watched(
	handler: UniversalHandler | undefined,
	request: RpcRequest,
	response: RpcResponse,
	{ limits, clock, streams }: DispatchParts,
): Outgoing {
	const outgoing = new Outgoing(response, () => resetStalled(response));
	response.once("close", streams.watch(outgoing));
	whenIdle(response, limits.stalledReaderMs, () => {
		if (outgoing.waitingBytes > 0) streams.stall(outgoing);
	});
	if (handler?.method.methodKind === "bidi_streaming") return outgoing;
	const { requestTimeoutMs } = limits;
	response.once(
		"close",
		clock.after(requestTimeoutMs, () => endLate(request, response, requestTimeoutMs)),
	);
	return outgoing;
}
