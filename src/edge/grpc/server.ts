/** The gRPC port: HTTP/2, in clear text or with TLS. The first connection loads what speaks it. */

import type { Http2SecureServer, Http2Server, ServerHttp2Session } from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import { loadOnce } from "../../std/load-once.ts";
import type { Log } from "../../std/log.ts";
import type { EdgeLimits, GrpcTls } from "../port.ts";
import { requestOptions } from "../server.ts";
import type { RpcResponse } from "./answer.ts";
import type { RpcRequest } from "./dispatch.ts";

export interface GrpcServerParts {
	limits: EdgeLimits;
	tls: GrpcTls | undefined;
	/** One more connection of an address; returns false at the limit. */
	admits(socket: Socket): boolean;
	answer(request: RpcRequest, response: RpcResponse): void;
	log: Log;
}

export interface GrpcServer {
	readonly server: Server;
	readonly connections: number;
	/** Pings every connection, and drops those that did not answer the last ping. */
	heartbeat(): void;
	/** Nothing new; what is open ends by itself. Resolves when all are gone. */
	close(): Promise<void>;
	destroy(): void;
}

export function createGrpcServer(parts: GrpcServerParts): GrpcServer {
	const { limits, log } = parts;
	const sockets = new Set<Socket>();
	const connections = new Map<ServerHttp2Session, { answered: boolean }>();
	let loaded: Http2Server | Http2SecureServer | undefined;
	const load = loadOnce(async () => {
		const server = await createHttp2(parts);
		loaded = server;
		server.on("session", (session) => {
			connections.set(session, { answered: true });
			session.on("close", () => connections.delete(session));
			session.on("error", (cause) => log.debug({ error: cause.message }, "a gRPC connection failed"));
		});
		server.on("sessionError", (cause) => log.debug({ error: cause.message }, "a gRPC connection failed"));
		return server;
	});
	const front = createServer({ noDelay: true, keepAlive: true }, (socket) => {
		sockets.add(socket);
		socket.on("close", () => sockets.delete(socket));
		socket.on("error", () => socket.destroy());
		if (!parts.admits(socket)) {
			socket.destroy();
			return;
		}
		load().then(
			(server) => {
				// It takes over what the socket has read meanwhile.
				if (!socket.destroyed) server.emit("connection", socket);
			},
			(cause: unknown) => {
				log.error({ err: cause }, "the gRPC port could not be served");
				socket.destroy();
			},
		);
	});
	front.maxConnections = limits.connectionsMax;
	return {
		server: front,
		get connections() {
			return sockets.size;
		},
		heartbeat() {
			for (const [session, state] of connections) ping(session, state);
		},
		close() {
			const closed = new Promise<void>((resolve) => front.close(() => resolve()));
			for (const session of connections.keys()) session.close();
			// Of HTTP/1.1, what is idle.
			loaded?.close();
			return closed;
		},
		destroy() {
			for (const session of connections.keys()) session.destroy();
			for (const socket of sockets) socket.destroy();
		},
	};
}

function ping(session: ServerHttp2Session, state: { answered: boolean }): void {
	if (session.closed || session.destroyed) return;
	if (!state.answered) {
		session.destroy();
		return;
	}
	state.answered = false;
	session.ping((cause) => {
		state.answered = cause === null;
	});
}

/** A burst of resets is allowed, such as a client that goes away with all its streams. */
const RESET_BURST_SECONDS = 10;

async function createHttp2({ limits, tls, answer }: GrpcServerParts): Promise<Http2Server | Http2SecureServer> {
	const http2 = await import("node:http2");
	const options = {
		settings: {
			maxConcurrentStreams: limits.grpcStreamsPerConnectionMax,
			maxHeaderListSize: limits.headersBytesMax,
			enablePush: false,
		},
		streamResetRate: limits.grpcResetsPerSecondMax,
		streamResetBurst: Math.max(
			limits.grpcResetsPerSecondMax * RESET_BURST_SECONDS,
			// A client may drop all that it has.
			limits.grpcStreamsPerConnectionMax,
		),
		maxSessionMemory: SESSION_MEGABYTES_MAX,
	};
	if (!tls) return http2.createServer(options, answer);
	const server = http2.createSecureServer({ ...options, ...tls, ...http1Options(limits) }, answer);
	// The port is another server's: Node begins to watch for HTTP/1.1 requests that do not arrive when its own listens.
	server.emit("listening");
	return server;
}

const http1Options = (limits: EdgeLimits) => ({ allowHTTP1: true, ...requestOptions(limits) });

/** What one connection may hold of streams that are not read; Node's own limit of 10 is for a page and its pictures. */
const SESSION_MEGABYTES_MAX = 64;
