/** Remote procedures: the runtime contract over gRPC, gRPC-web and Connect. The door of this folder; it loads no library. */

import { setImmediate } from "node:timers/promises";
import { within } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { loadOnce } from "../../std/load-once.ts";
import { listen } from "../http/server.ts";
import type { EdgeDeps, GrpcTls } from "../port.ts";
import type { Rest } from "../rest/rest.ts";
import type { Flusher } from "../stream/stream.ts";
import type { Dispatch, Dispatcher, DispatchParts } from "./dispatch.ts";
import type { RpcRequest, RpcResponse } from "./fast-stream/fast-stream.ts";
import { createGrpcServer, type GrpcServer, type GrpcServerParts } from "./server.ts";
import { RpcStreams } from "./streams.ts";

export interface RpcParts
	extends Omit<DispatchParts, "register" | "streams" | "stopping">,
		Omit<GrpcServerParts, "tls" | "refuse" | "answer"> {
	deps: EdgeDeps;
}

export interface RpcServer {
	/** Answers a call that the gate of the main port admitted. */
	answer: Dispatch;
	/** The same procedures over plain HTTP, for requests that the main port admitted. */
	rest(): Promise<Rest>;
	listen(host: string, port: number, tls?: GrpcTls): Promise<{ url: string }>;
	heartbeat(): void;
	/** Called four times in the time that a reader may take nothing. */
	sweep(): void;
	/** Refuses new work and cuts what would not end by itself (B and D); calls that only read go on, and so do A and C (Z6). */
	stop(): Promise<void>;
	/** Waits for what ends by itself, cuts the rest, and closes the port. What is left at the deadline is for `destroy`. */
	close(deadlineMs: number): Promise<void>;
	destroy(): void;
	readonly streams: number;
	readonly stalled: number;
	readonly connections: number;
}

/** The part of the stopping time that is reserved for writing the last statuses. */
const FLUSH_MS = 500;

/** The cost of a call to the event loop, in characters of a backlog: of many calls at once, few begin in one turn. */
const CALL_CHARS = 64 * 1024;

/** Spends before the call continues, so that the next call sees what is left of the turn. */
async function takeTurn(flusher: Flusher): Promise<void> {
	if (flusher.isTurnSpent) await new Promise<void>((resolve) => flusher.nextTurn(() => spendOn(flusher, resolve)));
	else flusher.spend(CALL_CHARS);
}

function spendOn(flusher: Flusher, go: () => void): void {
	flusher.spend(CALL_CHARS);
	go();
}

const failing = (log: Log) => (cut: () => void) => (cause: unknown) => {
	log.error({ err: cause }, "a remote procedure could not be answered");
	cut();
};

/** Whether a path of the main port is a remote procedure: `/package.Service/Method`. */
export const isRpcPath = (path: string): boolean => path.startsWith("/nexus.runtime.") || path.startsWith("/grpc.");

export function createRpc(parts: RpcParts): RpcServer {
	const streams = new RpcStreams();
	let isStopping = false;
	let server: GrpcServer | undefined;
	let dispatcher: Dispatcher | undefined;
	const load = loadOnce(async () => {
		const [{ createDispatcher }, register] = await Promise.all([import("./dispatch.ts"), parts.deps.methods()]);
		dispatcher = createDispatcher({ ...parts, register, streams, stopping: () => isStopping });
		return dispatcher;
	});
	const answer: Dispatch = async (request, response, caller) => {
		const loaded = await load();
		await takeTurn(parts.flusher);
		if (!isGone(request)) await loaded.answer(request, response, caller);
	};
	const failed = failing(parts.log);
	const stop = async () => {
		if (isStopping) return;
		isStopping = true;
		// The news that the daemon is stopping reaches the subscribers of its health before they are cut.
		await setImmediate();
		dispatcher?.cut(["B", "D", undefined]);
	};
	return {
		answer,
		async rest() {
			const { rest } = await load();
			await takeTurn(parts.flusher);
			return rest;
		},
		async listen(host, port, tls) {
			server = createGrpcServer({
				...parts,
				tls,
				refuse(stream, contentType) {
					load().then(
						({ refuse }) => refuse(stream, contentType),
						failed(() => stream.close()),
					);
				},
				answer(request, response, caller) {
					answer(request, response, caller).catch(failed(() => cutOff(response)));
				},
			});
			return await listen(server.server, host, port, tls ? "https" : "http");
		},
		heartbeat: () => server?.heartbeat(),
		sweep: () => streams.sweep(),
		stop,
		async close(deadlineMs) {
			await stop();
			await within(parts.clock, Math.max(0, deadlineMs - FLUSH_MS), streams.gone(["A", "C"]));
			dispatcher?.cut();
			// Trailers go out before the connections do: a connection that breaks reads as UNAVAILABLE.
			await within(parts.clock, Math.min(deadlineMs, FLUSH_MS), streams.gone());
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

/** Did the client hang up while the call waited? No later event reports that. */
const isGone = (request: RpcRequest): boolean =>
	"stream" in request ? request.stream.destroyed : request.socket.destroyed;

const cutOff = (response: RpcResponse): void => {
	if ("stream" in response) response.stream?.close();
	else response.destroy();
};
