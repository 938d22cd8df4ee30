/** WebSocket: many logs over one connection, read by the same cursors and under the same back-pressure as SSE. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import type { Batch, Cursor } from "../bus/bus.ts";
import { httpStatusOf, NexusError, toNexusError } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";
import { refuse } from "./connection.ts";
import type { EdgeLimits } from "./port.ts";
import { ClientMessage } from "./schema.ts";
import type { Sources } from "./source.ts";

const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;

export interface Sockets {
	upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void;
	/** Pings who is idle and drops who did not answer the last ping. */
	heartbeat(): void;
	/** Says good-bye (1001) without a fake terminal. */
	close(): void;
	readonly count: number;
	readonly subscriptions: number;
	readonly stalled: number;
}

interface SocketParts {
	sources: Sources;
	limits: EdgeLimits;
	log: Log;
}

export function createSockets(parts: SocketParts): Sockets {
	const { limits } = parts;
	const server = new WebSocketServer({
		noServer: true,
		clientTracking: false,
		perMessageDeflate: false,
		maxPayload: limits.wsMessageBytesMax,
	});
	server.on("wsClientError", (cause, socket, request) => {
		const [code, header] =
			request.method === "GET"
				? (["invalid", "Sec-WebSocket-Version: 13"] as const)
				: (["method_not_allowed", "Allow: GET"] as const);
		const error = new NexusError(code, `this is no WebSocket handshake: ${cause.message}`);
		refuse(socket as Socket, error, httpStatusOf(code), [header]);
	});
	const connections = new Set<Connection>();
	let stalled = 0;
	return {
		upgrade(request, socket, head) {
			server.handleUpgrade(request, socket, head, (ws) => {
				const connection = new Connection(ws, parts);
				connections.add(connection);
				ws.on("close", () => {
					connections.delete(connection);
					connection.release();
				});
				socket.setTimeout(limits.stalledReaderMs, () => {
					if (ws.bufferedAmount === 0) return;
					stalled++;
					ws.terminate();
				});
			});
		},
		heartbeat() {
			for (const connection of connections) connection.heartbeat();
		},
		close() {
			for (const connection of connections) connection.close(GOING_AWAY, "the daemon is stopping");
		},
		get count() {
			return connections.size;
		},
		get subscriptions() {
			let count = 0;
			for (const connection of connections) count += connection.subscriptions;
			return count;
		},
		get stalled() {
			return stalled;
		},
	};
}

interface Subscription {
	id: string;
	/** Undefined while it is being opened. */
	cursor?: Cursor;
}

class Connection {
	readonly ws: WebSocket;
	readonly #parts: SocketParts;
	readonly #subscriptions = new Map<string, Subscription>();
	/** Those that may have records, in turn: a long replay does not hold up the others. */
	readonly #ready = new Set<Subscription>();
	#alive = true;

	constructor(ws: WebSocket, parts: SocketParts) {
		this.ws = ws;
		this.#parts = parts;
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
		if (this.ws.bufferedAmount > 0) return;
		if (!this.#alive) {
			this.ws.terminate();
			return;
		}
		this.#alive = false;
		this.ws.ping();
	}

	close(code: number, reason: string): void {
		this.release();
		this.ws.close(code, reason);
	}

	release(): void {
		for (const subscription of this.#subscriptions.values()) subscription.cursor?.close();
		this.#subscriptions.clear();
		this.#ready.clear();
	}

	#receive(data: RawData, isBinary: boolean): void {
		this.#alive = true;
		if (this.ws.bufferedAmount > this.#parts.limits.wsBufferedBytesMax * 2) {
			this.close(TRY_AGAIN_LATER, "read before you ask for more");
			return;
		}
		let message: ClientMessage;
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
				this.#drop(message.id);
				return;
			default:
				message satisfies never;
		}
	}

	async #subscribe(message: Extract<ClientMessage, { type: "subscribe" }>): Promise<void> {
		const { id } = message;
		const { sources, limits } = this.#parts;
		if (this.#subscriptions.has(id)) throw new NexusError("conflict", `there is a subscription ${id} already`);
		if (this.#subscriptions.size >= limits.wsSubscriptionsMax) {
			throw new NexusError("busy", `${limits.wsSubscriptionsMax} subscriptions are the limit; unsubscribe one`);
		}
		const subscription: Subscription = { id };
		this.#subscriptions.set(id, subscription);
		let cursor: Cursor;
		try {
			cursor =
				"run" in message
					? await sources.run(message.run, message.after ?? 0)
					: await sources.session(message.session, message.after);
		} catch (cause) {
			if (this.#subscriptions.get(id) === subscription) this.#subscriptions.delete(id);
			throw cause;
		}
		if (this.#subscriptions.get(id) !== subscription) {
			cursor.close();
			return;
		}
		subscription.cursor = cursor;
		this.#send(JSON.stringify({ type: "subscribed", id, after: cursor.offset }));
		const wake = () => {
			this.#ready.add(subscription);
			this.#pump();
		};
		cursor.onWake(wake);
		wake();
	}

	#drop(id: string): void {
		const subscription = this.#subscriptions.get(id);
		if (!subscription) return;
		this.#subscriptions.delete(id);
		this.#ready.delete(subscription);
		subscription.cursor?.close();
	}

	/** Sends while there is room, one batch of each ready subscription in turn; what was sent calls again. */
	readonly #pump = (): void => {
		for (const subscription of this.#ready) {
			if (this.ws.bufferedAmount >= this.#parts.limits.wsBufferedBytesMax) return;
			this.#ready.delete(subscription);
			try {
				this.#step(subscription);
			} catch (cause) {
				this.#fail(subscription, cause);
			}
		}
	};

	#step(subscription: Subscription): void {
		const cursor = subscription.cursor!;
		const batch = cursor.next();
		if (batch instanceof Promise) {
			batch.then(
				(found) => {
					this.#deliver(subscription, found);
					this.#pump();
				},
				(cause: unknown) => this.#fail(subscription, cause),
			);
		} else {
			this.#deliver(subscription, batch);
		}
	}

	#deliver(subscription: Subscription, batch: Batch | undefined): void {
		const { id, cursor } = subscription;
		if (this.#subscriptions.get(id) !== subscription || !cursor) return;
		if (batch) {
			this.#send(framesMessage(id, batch));
			// Walking a set also walks what is added meanwhile: this is the round.
			this.#ready.add(subscription);
		} else if (cursor.ended) {
			this.#drop(id);
			this.#send(JSON.stringify({ type: "ended", id }));
		}
	}

	#fail(subscription: Subscription, cause: unknown): void {
		if (this.#subscriptions.get(subscription.id) !== subscription) return;
		this.#drop(subscription.id);
		this.#sendError(subscription.id, cause);
	}

	#sendError(id: string | undefined, cause: unknown): void {
		const error = toNexusError(cause);
		if (!(cause instanceof NexusError)) this.#parts.log.error({ err: cause }, "a subscription failed");
		this.#send(JSON.stringify({ type: "error", ...(id !== undefined && { id }), ...error.toJSON() }));
	}

	#send(text: string): void {
		this.ws.send(text, this.#sent);
	}

	readonly #sent = (cause?: Error | null): void => {
		if (!cause && this.#ready.size > 0) this.#pump();
	};
}

/** The records are JSON already: they are placed, not parsed. */
const framesMessage = (id: string, { first, text }: Batch): string =>
	`{"type":"frames","id":${JSON.stringify(id)},"first":${first},"frames":[${text.replaceAll("\n", ",")}]}`;

function parse(data: RawData, isBinary: boolean): ClientMessage {
	if (isBinary) throw new NexusError("invalid", "send text messages");
	let value: unknown;
	try {
		value = JSON.parse((data as Buffer).toString());
	} catch (cause) {
		throw new NexusError("invalid", `message is not JSON: ${(cause as Error).message}`, { cause });
	}
	const parsed = ClientMessage.safeParse(value);
	if (parsed.success) return parsed.data;
	throw new NexusError(
		"invalid",
		'send {type:"subscribe", id, run or session, after?} or {type:"unsubscribe", id}; see PROTOCOL §6',
	);
}
