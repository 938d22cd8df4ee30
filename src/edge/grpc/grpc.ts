/** Remote procedures: the runtime contract over gRPC, gRPC-web and Connect. The door of this folder; it loads no library. */

import type { Socket } from "node:net";
import type { Services } from "../../services/services.ts";
import { loadOnce } from "../../std/load-once.ts";
import type { Log } from "../../std/log.ts";
import type { Caller } from "../gate.ts";
import type { EdgeDeps, EdgeLimits, GrpcTls } from "../port.ts";
import { listen } from "../server.ts";
import type { Flusher } from "../stream/stream.ts";
import type { RpcResponse } from "./answer.ts";
import type { Dispatch, RpcRequest } from "./dispatch.ts";
import { createGrpcServer, type GrpcServer } from "./server.ts";
import { Streams } from "./streams.ts";

export interface RpcParts {
	deps: EdgeDeps;
	services: Services;
	limits: EdgeLimits;
	flusher: Flusher;
	/** Who calls on the gRPC port. */
	identify(request: RpcRequest): Caller;
	/** One more connection of an address; false at the limit. */
	enter(socket: Socket): boolean;
	/** Throws `busy` when no further stream may open. */
	admitStream(): void;
	log: Log;
}

export interface Rpc {
	/** Answers a call that the gate of the main port let in. */
	answer: Dispatch;
	listen(host: string, port: number, tls?: GrpcTls): Promise<{ url: string }>;
	heartbeat(): void;
	/** Called four times in the time that a reader may take nothing. */
	sweep(): void;
	/** Cuts every stream and closes the port; what is left at the deadline is cut off. */
	close(): Promise<void>;
	destroy(): void;
	readonly streams: number;
	readonly stalled: number;
	readonly connections: number;
}

/** Whether a path of the main port is a remote procedure: `/package.Service/Method`. */
export const isRpcPath = (path: string): boolean => path.startsWith("/nexus.runtime.") || path.startsWith("/grpc.");

export function createRpc(parts: RpcParts): Rpc {
	const streams = new Streams();
	let isStopping = false;
	let server: GrpcServer | undefined;
	const load = loadOnce(async () => {
		const { createDispatch } = await import("./dispatch.ts");
		return createDispatch({ ...parts, streams, stopping: () => isStopping });
	});
	const answer: Dispatch = async (request, response, caller) => {
		const dispatch = await load();
		if (!isGone(request)) await dispatch(request, response, caller);
	};
	return {
		answer,
		async listen(host, port, tls) {
			server = createGrpcServer({
				limits: parts.limits,
				tls,
				enter: parts.enter,
				answer(request, response) {
					answer(request, response, parts.identify(request)).catch((cause: unknown) => {
						parts.log.error({ err: cause }, "a remote procedure could not be answered");
						cutOff(response);
					});
				},
				log: parts.log,
			});
			return await listen(server.server, host, port, tls ? "https" : "http");
		},
		heartbeat: () => server?.heartbeat(),
		sweep: () => streams.sweep(),
		async close() {
			isStopping = true;
			await server?.close();
		},
		destroy: () => server?.destroy(),
		get streams() {
			return streams.count;
		},
		get stalled() {
			return streams.stalled;
		},
		get connections() {
			return server?.connections ?? 0;
		},
	};
}

/** Hung up while the library was loaded: nobody will tell again. */
const isGone = (request: RpcRequest): boolean =>
	"stream" in request ? request.stream.destroyed : request.socket.destroyed;

const cutOff = (response: RpcResponse): void => {
	if ("stream" in response) response.stream?.close();
	else response.destroy();
};
