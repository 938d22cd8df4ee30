/** Connections before they are requests: their limits, and the answers to a broken or too slow request. */

import type { EventEmitter } from "node:events";
import type { Server } from "node:http";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { httpStatusOf, NexusError } from "@nexus-stream/protocol";
import type { EdgeLimits } from "../port.ts";
import type { Lobby } from "./lobby.ts";
import type { Proxies } from "./proxies.ts";
import { createCounts } from "./strangers.ts";

export interface Connections {
	readonly count: number;
	/** Counts a connection of the gRPC port; false when its address has too many. */
	admits(socket: Socket): boolean;
	/** Whether it is a trusted proxy's, whose clients share it. */
	isProxy(socket: Socket): boolean;
	/** It has sent a token that is good. */
	prove(socket: Socket): void;
	/** Counts one more of a client until `ended` closes; throws `busy` at the limit. For clients who share a proxy's connections. */
	enter(address: string, ended: EventEmitter): void;
	destroy(): void;
}

export function guardConnections(server: Server, limits: EdgeLimits, proxies: Proxies, lobby: Lobby): Connections {
	const open = new Set<Socket>();
	/** Connections that return to the lobby while they are idle. */
	const unproven = new WeakSet<Socket>();
	const perClient = createCounts();
	/** Whether an answer is under way, in which an error text would be garbage. */
	const answering = new WeakMap<Socket, { headersSent: boolean }>();
	const admits = (socket: Socket): boolean => {
		const address = socket.remoteAddress ?? "";
		// Clients that share a proxy's connections are counted by their requests.
		return proxies.isTrusted(address) || perClient.add(address, socket) <= limits.connectionsPerClientMax;
	};
	const isProxy = ({ remoteAddress = "" }: Socket): boolean => proxies.isTrusted(remoteAddress);
	// Node's own listener, which reads and parses, comes after the lobby.
	const parse = server.listeners("connection") as ((this: Server, socket: Socket) => void)[];
	server.removeAllListeners("connection");
	Object.assign(server, { pauseOnConnect: true });
	server.on("connection", (socket: Socket) => {
		open.add(socket);
		socket.once("close", () => open.delete(socket));
		if (!admits(socket)) {
			socket.resume();
			refuse(socket, tooMany(limits));
			return;
		}
		const serve = () => {
			for (const listener of parse) listener.call(server, socket);
			socket.resume();
		};
		if (isProxy(socket)) return serve();
		unproven.add(socket);
		lobby.enter(socket, serve);
	});
	server.prependListener("request", ({ socket }, outgoing) => {
		answering.set(socket, outgoing);
		if (!unproven.has(socket)) return;
		lobby.leave(socket);
		outgoing.once("close", () => unproven.has(socket) && lobby.comeBack(socket));
	});
	server.prependListener("upgrade", (_, socket) => lobby.leave(socket as Socket));
	server.on("clientError", (cause: NodeJS.ErrnoException, socket: Socket) => {
		if (!socket.writable || cause.code === "ECONNRESET" || answering.get(socket)?.headersSent) {
			socket.destroy();
			return;
		}
		const [status, error] = clientError(cause.code);
		refuse(socket, error, status);
	});
	return {
		get count() {
			return open.size;
		},
		admits,
		isProxy,
		prove(socket) {
			unproven.delete(socket);
			lobby.leave(socket);
		},
		enter(address, ended) {
			if (perClient.of(address) >= limits.connectionsPerClientMax) throw tooMany(limits);
			perClient.add(address, ended);
		},
		destroy() {
			for (const socket of open) socket.destroy();
		},
	};
}

const tooMany = ({ connectionsPerClientMax }: EdgeLimits) =>
	new NexusError("busy", `${connectionsPerClientMax} connections from one address are the limit`);

function clientError(code: string | undefined): [status: number, NexusError] {
	switch (code) {
		case "HPE_HEADER_OVERFLOW":
			return [431, new NexusError("too_large", "the request's headers are too large")];
		case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
			return [413, new NexusError("too_large", "the request's chunk extensions are too large")];
		case "ERR_HTTP_REQUEST_TIMEOUT":
			return [408, new NexusError("timeout", "the request did not arrive in time")];
		default:
			return [400, new NexusError("invalid", "this is not an HTTP request")];
	}
}

/** For clients: an error other than a NexusError is hidden, as it may name paths of this machine. The caller logs the cause. */
export const shownOf = (cause: unknown): NexusError => (cause instanceof NexusError ? cause : failed(cause));

const failed = (cause: unknown) =>
	new NexusError(
		"internal",
		"the daemon failed at this request; its log says why. Was the package replaced? Then restart it",
		{ cause },
	);

/** Answers on the bare socket, where there is no response object, and hangs up. */
export function refuse(
	socket: Socket,
	error: NexusError,
	status = httpStatusOf(error.code),
	headers: readonly string[] = [],
): void {
	const body = JSON.stringify(error.toJSON());
	const lines = [
		`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? error.code}`,
		"Content-Type: application/json",
		`Content-Length: ${Buffer.byteLength(body)}`,
		...(error.code === "unauthenticated" ? ["WWW-Authenticate: Bearer"] : []),
		...headers,
		"X-Content-Type-Options: nosniff",
		"Connection: close",
	];
	socket.on("error", () => socket.destroy());
	socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
	socket.destroySoon();
}
