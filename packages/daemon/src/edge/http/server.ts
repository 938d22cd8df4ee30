/** The bare HTTP server: its time-outs, how it listens, and how requests and upgrades reach what answers them. */

import type { EventEmitter } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { httpStatusOf, NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { loadOnce } from "../../std/load-once.ts";
import type { EdgeLimits } from "../port.ts";
import { refuse, shownOf } from "./connection.ts";
import type { Caller } from "./gate.ts";

/** On every answer; streams and the page add their own. */
const HEADERS: readonly (readonly [name: string, value: string])[] = [
	["X-Content-Type-Options", "nosniff"],
	["Referrer-Policy", "no-referrer"],
	["Cross-Origin-Resource-Policy", "same-origin"],
	["Cache-Control", "no-store"],
];

/** How often at least requests are looked at that do not arrive. */
const CHECK_MS_MAX = 30_000;

/** Limits of an HTTP/1.1 request, on either port. */
export function requestOptions(limits: EdgeLimits) {
	// A part of the request cannot take longer than the whole; Node would refuse to start.
	const headersTimeout = Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs);
	return {
		maxHeaderSize: limits.headersBytesMax,
		headersTimeout,
		requestTimeout: limits.requestTimeoutMs,
		keepAliveTimeout: limits.keepAliveMs,
		connectionsCheckingInterval: Math.min(Math.ceil(headersTimeout / 4), CHECK_MS_MAX),
	};
}

export function createHttpServer(limits: EdgeLimits): Server {
	const server = createServer({
		...requestOptions(limits),
		noDelay: true,
		// Node would refuse without a body; the gate refuses with one.
		requireHostHeader: false,
		// Some HTTP clients offer h2c with every request; that is an offer, and is ignored.
		shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === "websocket",
	});
	server.maxConnections = limits.connectionsMax;
	// For every socket: no progress at all for this long. Heartbeats are progress, so an idle stream stays.
	server.timeout = limits.stalledReaderMs;
	return server;
}

/** Lets a request in, until `ended` closes, or throws why not. */
export type Admit = (request: IncomingMessage, ended: EventEmitter) => Caller;
/** Answers one request, with an error if need be. */
export type HttpListener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

export interface Answering {
	/** Called by the first request, and again only after a failure. */
	load(): Promise<HttpListener>;
	upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void;
	closing(): boolean;
	/** The address of who asks, for the log. */
	clientOf(request: IncomingMessage): string;
	log: Log;
}

export function serve(server: Server, { load, upgrade, closing, clientOf, log }: Answering): void {
	const listener = loadOnce(load);
	server.on("request", (incoming, outgoing) => {
		const started = performance.now();
		// Gone from the socket once it has closed.
		const client = clientOf(incoming);
		for (const [name, value] of HEADERS) outgoing.setHeader(name, value);
		if (closing()) outgoing.setHeader("Connection", "close");
		// Many clients write all of a body before they read that it was refused. It is taken in and thrown away, for
		// `requestTimeoutMs` at most: hanging up on them would destroy the answer on its way.
		outgoing.on("finish", () => void incoming.resume());
		outgoing.on("close", () => {
			const ms = Math.round(performance.now() - started);
			const { method } = incoming;
			log.debug({ client, method, path: pathOf(incoming), status: outgoing.statusCode, ms }, "request");
			if (closing()) setImmediate(() => server.closeIdleConnections());
		});
		listener()
			// A client that hung up meanwhile emits no second `close`: its request would count as open forever.
			.then((answer) => (incoming.socket.destroyed ? undefined : answer(incoming, outgoing)))
			.catch((cause: unknown) => {
				// A refusal by the gate is an answer and not logged: strangers must not be able to fill the log.
				if (!(cause instanceof NexusError)) log.error({ err: cause }, "an answer could not be sent");
				fail(outgoing, cause);
			});
	});
	// Expectations other than `100-continue` may be ignored; Node would refuse them with an empty answer.
	server.on("checkExpectation", (incoming, outgoing) => void server.emit("request", incoming, outgoing));
	server.on("upgrade", (request, socket, head) => {
		try {
			upgrade(request, socket as Socket, head);
		} catch (cause) {
			if (!(cause instanceof NexusError)) log.error({ err: cause }, "a handshake failed");
			refuse(socket as Socket, shownOf(cause));
		}
	});
}

/** Says that nothing could be answered, as long as nothing was. */
function fail(outgoing: ServerResponse, cause: unknown): void {
	if (outgoing.headersSent || outgoing.destroyed) {
		outgoing.destroy();
		return;
	}
	const error = shownOf(cause);
	const text = JSON.stringify(error.toJSON());
	outgoing.writeHead(httpStatusOf(error.code), jsonHeaders(text));
	outgoing.end(text);
}

/** With its length an answer is one write, and no chunks. */
export const jsonHeaders = (text: string) => ({
	"content-type": "application/json",
	"content-length": Buffer.byteLength(text),
});

/** Without the query, which only the handler may see. */
export const pathOf = (request: IncomingMessage): string => (request.url ?? "").split("?", 1)[0]!;

export async function listen(
	server: NetServer,
	host: string,
	port: number,
	scheme = "http",
): Promise<{ url: string; port: number }> {
	const { promise, resolve, reject } = Promise.withResolvers<void>();
	server.once("error", reject);
	server.listen({ host, port, backlog: 4096 }, resolve);
	try {
		await promise;
	} catch (cause) {
		throw listenError(cause as NodeJS.ErrnoException, host, port);
	} finally {
		server.off("error", reject);
	}
	const bound = (server.address() as AddressInfo).port;
	return { url: urlOf(scheme, host, bound), port: bound };
}

function listenError(cause: NodeJS.ErrnoException, host: string, port: number): NexusError {
	if (cause.code === "EADDRINUSE") {
		const message = `port ${port} on ${host} is in use; stop what uses it or choose another port`;
		return new NexusError("conflict", message, { cause });
	}
	return new NexusError(
		"config",
		`cannot listen on ${host} port ${port} (${cause.message}): choose another with --host and --port`,
		{ cause },
	);
}

/** An address that opens in a browser: a wildcard is reached at loopback. */
function urlOf(scheme: string, host: string, port: number): string {
	const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" || host === "" ? "::1" : host;
	return `${scheme}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
