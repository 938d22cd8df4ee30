/** The edge: Nexus over HTTP, server-sent events and WebSocket. The door of this folder. */

import type { IncomingMessage } from "node:http";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { createAuth } from "./http/auth.ts";
import { type Connections, guardConnections } from "./http/connection.ts";
import {
	type Caller,
	createGate,
	hostNameOf,
	type Identifiable,
	type RequestGate,
	requireAuth,
	requireReach,
	whenEnded,
} from "./http/gate.ts";
import { Lobby } from "./http/lobby.ts";
import { createPage } from "./http/page.ts";
import { createProxies } from "./http/proxies.ts";
import { type Admit, createHttpServer, listen, pathOf, serve } from "./http/server.ts";
import { createShares, createStrangers, type Strangers } from "./http/strangers.ts";
import { EDGE_LIMITS, type Edge, type EdgeDeps, type EdgeLimits } from "./port.ts";
import { createRpc } from "./rpc/grpc.ts";
import { createReaders, createSockets, createSources, Flusher } from "./stream/stream.ts";

export { EDGE_LIMITS, type EdgeLimits } from "./limits.ts";
export type {
	AppTokens,
	Channels,
	Edge,
	EdgeDeps,
	EdgeStats,
	GrpcTls,
	HealthFeed,
	Lab,
	LabFault,
	LabRun,
	LabState,
	Principal,
	RegisterMethods,
	SignIns,
} from "./port.ts";

/** The state of the open port. */
interface Door {
	url: string;
	port: number;
	hosts: Set<string>;
	closing: boolean;
	requests: number;
}

export function createEdge(deps: EdgeDeps): Edge {
	const limits: EdgeLimits = withDefaults(EDGE_LIMITS, deps.limits);
	const { clock } = deps;
	const door: Door = { url: "", port: 0, hosts: new Set(), closing: false, requests: 0 };
	const { flusher, readers, sockets, rpc, server, connections, lobby, ...front } = assemble(deps, limits, door);
	const heart = createHeart(clock, limits.heartbeatMs, () => {
		readers.heartbeat();
		sockets.heartbeat();
		rpc.heartbeat();
	});
	const sweeper = createHeart(clock, limits.stalledReaderMs / SWEEPS_PER_STALL, () => rpc.sweep());
	const stop = async () => {
		if (door.closing) return;
		door.closing = true;
		// A turn later: the last state of the daemon reaches the readers of its health before they are cut.
		await rpc.stop();
		readers.cut();
		sockets.close();
	};
	return {
		async listen(host, port) {
			Object.assign(door, await listen(server, host, port));
			for (const name of [host, ...deps.allowedHosts]) door.hosts.add(hostNameOf(name));
			heart.start();
			sweeper.start();
			return { url: door.url };
		},
		async listenGrpc(host, port, tls) {
			return rpc.listen(host, port, tls);
		},
		signInUrl: () => front.signIn().url,
		stop,
		async close(deadlineMs) {
			await stop();
			const cancel = clock.after(deadlineMs, () => {
				connections.destroy();
				rpc.destroy();
			});
			await rpc.close(deadlineMs);
			heart.stop();
			sweeper.stop();
			lobby.close();
			const closed = new Promise<void>((resolve) => server.close(() => resolve()));
			server.closeIdleConnections();
			await closed;
			cancel();
		},
		stats: () => ({
			requests: door.requests,
			connections: connections.count,
			sseReaders: readers.count,
			webSockets: sockets.count,
			grpcStreams: rpc.streams,
			grpcConnections: rpc.connections,
			subscriptions: sockets.subscriptions,
			stalledReaders: readers.stalled + sockets.stalled + rpc.stalled,
			flushSpacingMs: flusher.spacingMs,
			deferredFlushes: flusher.deferred,
			tokenFailures: front.auth.failures,
			tokenlessRefused: front.strangers.refused + lobby.refused + front.grpcLobby.refused,
		}),
	};
}

/** Puts gate, routes, readers and sockets behind a server that does not listen yet. */
function assemble(deps: EdgeDeps, limits: EdgeLimits, door: Door) {
	const { log, clock } = deps;
	const auth = createAuth({ token: deps.token, limits, clock, apps: deps.apps, signIns: deps.signIns });
	const cookieName = () => `nexus_${door.port}`;
	const proxies = createProxies(deps.trustedProxies);
	const gate = createGate({ auth, hosts: () => door.hosts, cookieName, proxies });
	const server = createHttpServer(limits);
	const strangers = createStrangers(limits, clock);
	// One for each port: calls of the gRPC port delay nothing on the main one.
	const lobby = new Lobby(limits, clock, () => false);
	const grpcLobby = new Lobby(limits, clock, strangers.refuses);
	const connections = guardConnections(server, limits, proxies, lobby);
	const sources = createSources(deps.bus, deps.ledger);
	const flusher = new Flusher({ flushMsMax: limits.flushMsMax, clock, log });
	const readers = createReaders(log, flusher);
	const sockets = createSockets({ sources, limits, log, flusher });
	const { admit, enterRpc, identify } = createEntrance({ door, gate, connections, strangers, limits, clock });
	const admitStream = () => {
		if (readers.count + sockets.count + rpc.streams < limits.streamsMax) return;
		throw new NexusError("busy", `${limits.streamsMax} streams are open already; close one or try later`);
	};
	const holdStream = createShares(limits);
	const rpc = createRpc({
		deps,
		limits,
		flusher,
		readers,
		admitStream,
		holdStream,
		clock,
		log,
		identify,
		connections,
		strangers,
		lobby: grpcLobby,
	});
	const signIn = () => {
		const code = auth.newCode();
		return { code, url: `${door.url}/#code=${code}` };
	};
	const page = createPage(deps.pageDir);
	serve(server, {
		async load() {
			const { createListener } = await import("./http/listener.ts");
			const parts = { deps, limits, auth, sources, readers, admitStream, cookieName, signIn };
			return createListener({ ...parts, page, admit, holdStream, enterRpc, rpc });
		},
		upgrade(request, socket, head) {
			const caller = admit(request, socket);
			if (pathOf(request) !== "/v1/ws") throw new NexusError("not_found", "there is no WebSocket at this address");
			requireAuth(caller);
			requireReach(caller, false);
			admitStream();
			whenEnded(caller, socket, () => socket.destroy());
			void sockets.upgrade(request, socket, head);
		},
		closing: () => door.closing,
		clientOf: (request) => proxies.clientOf(request).address,
		log,
	});
	return { flusher, readers, sockets, rpc, signIn, server, connections, auth, strangers, lobby, grpcLobby };
}

interface EntranceParts {
	door: Door;
	gate: RequestGate;
	connections: Connections;
	strangers: Strangers;
	limits: EdgeLimits;
	clock: Clock;
}

/** Counts every request, and lets it in against the limits of its caller. */
function createEntrance({ door, gate, connections, strangers, limits, clock }: EntranceParts) {
	/** Admits while the daemon stops, too: remote procedures answer that with their own status. */
	const enterRpc: Admit = (request, ended) => {
		door.requests++;
		const caller = gate.admit(request);
		if (caller.proof) connections.prove(request.socket);
		else if (!caller.webhook) {
			strangers.enter(caller.address, ended, () => request.socket.destroy());
			ended.once("finish", () => request.complete || hangUp(request, limits.tokenlessBodyBytesMax, clock));
		}
		if (caller.proxied) connections.enter(caller.address, ended);
		return caller;
	};
	const admit: Admit = (request, ended) => {
		if (!door.closing) return enterRpc(request, ended);
		door.requests++;
		throw new NexusError("unavailable", "the daemon is stopping");
	};
	/** Callers of the gRPC port, which checks their connections itself. */
	const identify = (request: Identifiable): Caller => {
		door.requests++;
		return gate.identify(request);
	};
	return { admit, enterRpc, identify };
}

/** For a caller without a token to read its answer, and to send the rest of its body. */
const LINGER_MS = 1000;

/** Stops reading a body that was refused for its size. */
function hangUp(request: IncomingMessage, bytesMax: number, clock: Clock): void {
	const { socket } = request;
	// A turn later: Node has just begun to read on.
	if (Number(request.headers["content-length"]) > bytesMax) setImmediate(() => socket.pause());
	clock.after(LINGER_MS, () => request.complete || socket.destroy());
}

/** A reader that takes nothing is noticed at one of so many looks within its time. */
const SWEEPS_PER_STALL = 4;

/** One beat for all connections. */
function createHeart(clock: Clock, everyMs: number, beat: () => void) {
	let stop = () => {};
	const start = () => {
		stop = clock.after(everyMs, () => {
			beat();
			start();
		});
	};
	return { start, stop: () => stop() };
}
