/** The gRPC port: HTTP/2, in clear text or with TLS. The first connection loads what speaks it. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type {
	Http2SecureServer,
	Http2Server,
	IncomingHttpHeaders,
	ServerHttp2Session,
	ServerHttp2Stream,
} from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { loadOnce } from "../../std/load-once.ts";
import type { Connections } from "../http/connection.ts";
import type { Caller, Identifiable } from "../http/gate.ts";
import type { Lobby } from "../http/lobby.ts";
import { requestOptions } from "../http/server.ts";
import type { Strangers } from "../http/strangers.ts";
import type { EdgeLimits, GrpcTls } from "../port.ts";
import type { RpcRequest, RpcResponse } from "./fast-stream/fast-stream.ts";

export interface GrpcServerParts {
	limits: EdgeLimits;
	tls: GrpcTls | undefined;
	/** Identifies the caller. */
	identify(request: Identifiable): Caller;
	connections: Pick<Connections, "admits" | "isProxy">;
	lobby: Lobby;
	strangers: Strangers;
	/** Refuses a call of gRPC that has no token, without a look at its body. */
	refuse(stream: ServerHttp2Stream, contentType: string): void;
	answer(request: RpcRequest, response: RpcResponse, caller: Caller): void;
	clock: Clock;
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
	/** By the address and port of the other side: a session of TLS does not tell which connection it is over. */
	const byRemote = new Map<string, Socket>();
	const connections = new Map<ServerHttp2Session, { answered: boolean }>();
	let loaded: Http2Server | Http2SecureServer | undefined;
	const load = loadOnce(async () => {
		const server = await createHttp2(parts, (socket) => byRemote.get(remoteOf(socket)));
		loaded = server;
		server.on("session", (session) => {
			connections.set(session, { answered: true });
			session.on("close", () => connections.delete(session));
			session.on("error", (cause) => log.debug({ error: cause.message }, "a gRPC connection failed"));
		});
		server.on("sessionError", (cause) => log.debug({ error: cause.message }, "a gRPC connection failed"));
		return server;
	});
	const take = (socket: Socket) =>
		load().then(
			(server) => {
				if (socket.destroyed) return;
				server.emit("connection", socket);
				socket.resume();
			},
			(cause: unknown) => {
				log.error({ err: cause }, "the gRPC port could not be served");
				socket.destroy();
			},
		);
	const front = createServer({ noDelay: true, keepAlive: true, pauseOnConnect: true }, (socket) => {
		const remote = remoteOf(socket);
		sockets.add(socket);
		byRemote.set(remote, socket);
		socket.on("close", () => {
			sockets.delete(socket);
			byRemote.delete(remote);
		});
		socket.on("error", () => socket.destroy());
		if (!parts.connections.admits(socket)) socket.destroy();
		else if (parts.connections.isProxy(socket)) void take(socket);
		else parts.lobby.enter(socket, () => void take(socket));
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
			parts.lobby.close();
			const closed = new Promise<void>((resolve) => front.close(() => resolve()));
			for (const session of connections.keys()) session.close();
			// Closes idle HTTP/1.1 connections.
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

async function createHttp2(
	parts: GrpcServerParts,
	socketOf: (socket: Pick<Socket, "remoteAddress" | "remotePort">) => Socket | undefined,
): Promise<Http2Server | Http2SecureServer> {
	const { limits, tls } = parts;
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
	const server = tls
		? http2.createSecureServer(
				{ ...options, ...tls, allowHTTP1: true, ...requestOptions(limits) },
				answerHttp1(parts, socketOf),
			)
		: http2.createServer(options);
	// The door creates Node's request and response objects only after it has checked the token.
	server.removeAllListeners("stream");
	const door = createDoor(parts, http2);
	const peers = new WeakMap<ServerHttp2Session, Peer>();
	server.on("session", (session) => {
		const { remoteAddress = "", encrypted } = session.socket as Socket & { encrypted?: boolean };
		const socket = socketOf(session.socket);
		peers.set(session, { session, socket, address: remoteAddress, encrypted: encrypted === true, proven: false });
	});
	const onStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
		const peer = stream.session && peers.get(stream.session as ServerHttp2Session);
		if (peer) door(peer, stream, headers, rawHeaders);
		else stream.close();
	};
	server.on("stream", onStream as () => void);
	// The port is another server's: Node begins to watch for HTTP/1.1 requests that do not arrive when its own listens.
	if (tls) server.emit("listening");
	return server;
}

/** Over TLS a client may speak HTTP/1.1; the streams of HTTP/2 do not come here. */
const answerHttp1 =
	({ identify, lobby, strangers, answer }: GrpcServerParts, socketOf: (socket: Socket) => Socket | undefined) =>
	(request: unknown, response: unknown): void => {
		const [incoming, outgoing] = [request as IncomingMessage, response as ServerResponse];
		const caller = identify(incoming);
		const socket = socketOf(incoming.socket);
		if (!caller.proof) strangers.enter(caller.address, outgoing, () => incoming.socket.destroy());
		else if (socket) lobby.leave(socket);
		answer(incoming, outgoing, caller);
	};

const remoteOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string =>
	`${remoteAddress} ${remotePort}`;

/** Memory that one connection's unread streams may hold; Node's default of 10 suits a page and its pictures. */
const SESSION_MEGABYTES_MAX = 64;

/** One connection. */
interface Peer {
	session: ServerHttp2Session;
	/** As the lobby knows it: below TLS. */
	socket: Socket | undefined;
	address: string;
	encrypted: boolean;
	/** It has sent a token that is good. */
	proven: boolean;
}

type OnStream = (peer: Peer, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[]) => void;

/** Needs no token: probes send none. */
const OPEN_PATHS = "/grpc.health.v1.Health/";
const GRPC = /^application\/grpc(?:[+;]|$)/;

/** Checks the token by the bare headers, before anything is built for a call: a caller without one gets little. */
function createDoor(
	parts: GrpcServerParts,
	{ Http2ServerRequest, Http2ServerResponse, constants }: typeof import("node:http2"),
): OnStream {
	const { limits, lobby, strangers, clock } = parts;
	const calm = (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
	/** Others share the connection of a proxy, and the owner may share one with callers that send no token. */
	const turnAway = (peer: Peer, stream: ServerHttp2Stream, caller: Caller) => {
		if (caller.proxied || peer.proven) calm(stream);
		else peer.session.destroy();
	};
	const serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[], caller: Caller) =>
		parts.answer(new Http2ServerRequest(stream, headers, {}, rawHeaders), new Http2ServerResponse(stream), caller);
	return (peer, stream, headers, rawHeaders) => {
		const { address: remoteAddress, encrypted } = peer;
		const caller = parts.identify({ headers, socket: { remoteAddress, encrypted } });
		if (caller.proof) {
			if (!peer.proven && peer.socket) lobby.leave(peer.socket);
			peer.proven = true;
			return serve(stream, headers, rawHeaders, caller);
		}
		stream.on("error", () => {});
		if (!strangers.calls(caller.address)) return turnAway(peer, stream, caller);
		if (bytesOf(rawHeaders) > limits.tokenlessHeadersBytesMax) return calm(stream);
		strangers.enter(caller.address, stream, () => calm(stream));
		stream.once("aborted", () => strangers.calls(caller.address));
		const contentType = headers["content-type"] ?? "";
		if (headers[":path"]?.startsWith(OPEN_PATHS) || !GRPC.test(contentType))
			return serve(stream, headers, rawHeaders, caller);
		if (caller.heldMs === undefined) return parts.refuse(stream, contentType);
		clock.after(caller.heldMs, () => stream.closed || parts.refuse(stream, contentType));
	};
}

function bytesOf(rawHeaders: readonly string[]): number {
	let bytes = 0;
	for (const text of rawHeaders) bytes += text.length;
	return bytes;
}
