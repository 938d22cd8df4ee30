/** WebSocket: many logs over one connection, each a subscription of its pump. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { httpStatusOf, LOG_KINDS, NexusError, STREAM_ENDPOINTS, toNexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { RawData, WebSocket, WebSocketServer } from "ws";
import type { Cursor } from "../../bus/bus.ts";
import { loadOnce } from "../../std/load-once.ts";
import { WebSocketClientMessage } from "../api/resource.ts";
import { refuse, shownOf } from "../http/connection.ts";
import type { EdgeLimits } from "../port.ts";
import type { Flusher } from "./flusher.ts";
import { type Encoder, Pump, type Transport } from "./pump.ts";
import type { Sources } from "./source.ts";

const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;

type Subscribe = Extract<WebSocketClientMessage, { type: "subscribe" }>;

interface SocketParts {
	sources: Sources;
	limits: EdgeLimits;
	log: Log;
	flusher: Flusher;
}

/** The first handshake loads the library, and with it TLS, which nothing else here needs. */
async function createServer({ wsMessageBytesMax }: EdgeLimits): Promise<WebSocketServer> {
	const { WebSocketServer } = await import("ws");
	const server = new WebSocketServer({
		noServer: true,
		clientTracking: false,
		perMessageDeflate: false,
		maxPayload: wsMessageBytesMax,
	});
	server.on("wsClientError", (cause, socket, request) => {
		const [code, header] =
			request.method === "GET"
				? (["invalid", "Sec-WebSocket-Version: 13"] as const)
				: (["method_not_allowed", "Allow: GET"] as const);
		const error = new NexusError(code, `not a WebSocket handshake: ${cause.message}`);
		refuse(socket as Socket, error, httpStatusOf(code), [header]);
	});
	return server;
}

/** An error listener: without one, a socket that breaks would end the process. */
const ignore = () => {};

export function createSockets(parts: SocketParts, load = createServer) {
	const { limits } = parts;
	const connections = new Set<SocketConnection>();
	const server = loadOnce(() => load(limits));
	/** Handshakes that wait for the library. */
	let waiting = 0;
	let stalled = 0;
	let closed = false;
	const accept = (loaded: WebSocketServer, request: IncomingMessage, socket: Socket, head: Buffer) => {
		loaded.handleUpgrade(request, socket, head, (ws) => {
			const connection = new SocketConnection(ws, parts, () => stalled++);
			connections.add(connection);
			ws.on("close", () => {
				connections.delete(connection);
				connection.pump.gone();
			});
			socket.setTimeout(limits.stalledReaderMs, connection.pump.timedOut);
		});
	};
	return {
		/** Never rejects: what goes wrong is answered on the socket. */
		async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
			waiting++;
			socket.on("error", ignore);
			try {
				const loaded = await server();
				if (closed) throw new NexusError("unavailable", "the daemon is stopping");
				accept(loaded, request, socket, head);
			} catch (cause) {
				if (!(cause instanceof NexusError)) parts.log.error({ err: cause }, "a handshake failed");
				refuse(socket, shownOf(cause));
			} finally {
				socket.off("error", ignore);
				waiting--;
			}
		},
		/** Pings who is idle and drops who did not answer the last ping. */
		heartbeat(): void {
			for (const connection of connections) connection.heartbeat();
		},
		/** Says good-bye (1001) without a fake terminal. */
		close(): void {
			closed = true;
			for (const connection of connections) connection.pump.close("stopping");
		},
		get count(): number {
			return connections.size + waiting;
		},
		get subscriptions(): number {
			let count = 0;
			for (const connection of connections) count += connection.subscriptions;
			return count;
		},
		get stalled(): number {
			return stalled;
		},
	};
}

interface TransportParts {
	ws: WebSocket;
	bufferedBytesMax: number;
	drained(): void;
	stalled(): void;
}

function createTransport({ ws, bufferedBytesMax, drained, stalled }: TransportParts): Transport<string> {
	const hasRoom = () => ws.bufferedAmount < bufferedBytesMax;
	const sent = (cause?: Error | null) => {
		if (!cause && hasRoom()) drained();
	};
	return {
		write(data) {
			ws.send(data, sent);
			return hasRoom();
		},
		get waiting() {
			return ws.bufferedAmount > 0;
		},
		// A connection outlives its subscriptions: it is closed when the daemon stops, and hung up on for anything else.
		close(reason) {
			if (reason === "stalled") stalled();
			if (reason === "stopping") ws.close(GOING_AWAY, "the daemon is stopping");
			else ws.terminate();
		},
	};
}

class SocketConnection {
	readonly pump: Pump<string>;
	readonly #ws: WebSocket;
	readonly #parts: SocketParts;
	readonly #transport: Transport<string>;
	/** By the client's id: how to drop it. One that is still being opened has nothing to drop. */
	readonly #subscriptions = new Map<string, { drop(): void }>();
	#alive = true;

	constructor(ws: WebSocket, parts: SocketParts, stalled: () => void) {
		this.#ws = ws;
		this.#parts = parts;
		const { wsBufferedBytesMax: bufferedBytesMax } = parts.limits;
		this.#transport = createTransport({ ws, bufferedBytesMax, drained: () => this.pump.drained(), stalled });
		this.pump = new Pump(this.#transport, parts.flusher);
		ws.on("message", (data, isBinary) => this.#receive(data, isBinary));
		ws.on("pong", () => {
			this.#alive = true;
		});
		ws.on("error", (cause) => parts.log.debug({ error: cause.message }, "a WebSocket failed"));
	}

	get subscriptions(): number {
		return this.#subscriptions.size;
	}

	heartbeat(): void {
		// A full socket cannot pass a ping on; its stall is watched by the socket's own timeout.
		if (this.#transport.waiting) return;
		if (!this.#alive) {
			this.#ws.terminate();
			return;
		}
		this.#alive = false;
		this.#ws.ping();
	}

	#receive(data: RawData, isBinary: boolean): void {
		this.#alive = true;
		if (this.#ws.bufferedAmount > this.#parts.limits.wsBufferedBytesMax * 2) {
			this.pump.gone();
			this.#subscriptions.clear();
			this.#ws.close(TRY_AGAIN_LATER, "read before you ask for more");
			return;
		}
		let message: WebSocketClientMessage;
		try {
			message = parse(data, isBinary);
		} catch (cause) {
			this.#sendError(undefined, cause);
			return;
		}
		switch (message.type) {
			case "subscribe":
				this.#subscribe(message).catch((cause: unknown) => this.#sendError(message.id, cause));
				return;
			case "unsubscribe":
				this.#unsubscribe(message.id);
				return;
			default:
				message satisfies never;
		}
	}

	async #subscribe(message: Subscribe): Promise<void> {
		const { id } = message;
		const { limits } = this.#parts;
		if (this.#subscriptions.has(id)) throw new NexusError("conflict", `there is a subscription ${id} already`);
		if (this.#subscriptions.size >= limits.wsSubscriptionsMax) {
			throw new NexusError("busy", `${limits.wsSubscriptionsMax} subscriptions are the limit; unsubscribe one`);
		}
		const subscription = { drop() {} };
		const isOpen = () => this.#subscriptions.get(id) === subscription;
		this.#subscriptions.set(id, subscription);
		let cursor: Cursor;
		try {
			cursor = await this.#cursorOf(message);
		} catch (cause) {
			if (isOpen()) this.#subscriptions.delete(id);
			throw cause;
		}
		if (!isOpen()) {
			cursor.close();
			return;
		}
		subscription.drop = this.pump.add({
			cursor,
			encoder: messagesOf(id, cursor.offset),
			closes: "run" in message ? LOG_KINDS.run.closes : STREAM_ENDPOINTS["GET /v1/sessions/{session}/stream"].closes,
			ended: () => void this.#subscriptions.delete(id),
			failed: (cause) => {
				this.#subscriptions.delete(id);
				this.#sendError(id, cause);
			},
		});
	}

	#cursorOf(message: Subscribe): Promise<Cursor> {
		const { sources } = this.#parts;
		return "run" in message
			? sources.run(message.run, message.after ?? 0)
			: sources.session(message.session, message.after);
	}

	#unsubscribe(id: string): void {
		this.#subscriptions.get(id)?.drop();
		this.#subscriptions.delete(id);
	}

	#sendError(id: string | undefined, cause: unknown): void {
		const error = toNexusError(cause);
		if (!(cause instanceof NexusError)) this.#parts.log.error({ err: cause }, "a subscription failed");
		this.#transport.write(JSON.stringify({ type: "error", id, ...error.toJSON() }));
	}
}

/** The records are JSON already: they are placed, not parsed. */
function messagesOf(id: string, after: number): Encoder<string> {
	const name = JSON.stringify(id);
	return {
		open: () => `{"type":"subscribed","id":${name},"after":${after}}`,
		text: ({ first, text }) =>
			`{"type":"frames","id":${name},"first":${first},"frames":[${text.replaceAll("\n", ",")}]}`,
		end: () => `{"type":"ended","id":${name}}`,
	};
}

function parse(data: RawData, isBinary: boolean): WebSocketClientMessage {
	if (isBinary) throw new NexusError("invalid", "send text messages");
	let value: unknown;
	try {
		value = JSON.parse((data as Buffer).toString());
	} catch (cause) {
		throw new NexusError("invalid", `message is not JSON: ${(cause as Error).message}`, { cause });
	}
	const parsed = WebSocketClientMessage.safeParse(value);
	if (parsed.success) return parsed.data;
	throw new NexusError(
		"invalid",
		'send {type:"subscribe", id, run or session, after?} or {type:"unsubscribe", id}; see PROTOCOL §6',
	);
}
