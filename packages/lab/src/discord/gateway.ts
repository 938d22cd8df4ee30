/** Discord's gateway: hello, identify, heartbeats, and sessions that can be resumed from a sequence number. */

import type { Server } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";

const CONTENT_INTENT = 1 << 15;

export interface GatewayRules {
	token: string;
	me: object;
	messageContent: boolean;
}

interface Event {
	op: 0;
	t: string;
	s: number;
	d: unknown;
}

const say = (socket: WebSocket, payload: object) => socket.send(JSON.stringify(payload));

export class FakeGateway {
	/** How connections began, in order. */
	readonly begun: ("identify" | "resume")[] = [];
	readonly #server: Server;
	readonly #rules: GatewayRules;
	readonly #sockets: WebSocketServer;
	readonly #ready = new Set<WebSocket>();
	readonly #arrivals: (() => void)[] = [];
	/** One session: everything since its beginning. */
	#session: { id: string; events: Event[] } | undefined;

	constructor(server: Server, rules: GatewayRules) {
		this.#server = server;
		this.#rules = rules;
		this.#sockets = new WebSocketServer({ server });
		this.#sockets.on("connection", (socket) => this.#connect(socket));
	}

	get connections(): number {
		return this.#ready.size;
	}

	async connected(): Promise<void> {
		if (this.#ready.size === 0) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
	}

	dispatch(type: string, data: unknown): void {
		const event = this.#record(type, data);
		for (const socket of this.#ready) say(socket, event);
	}

	/** Closes every connection; nothing goes through any of them after it. */
	drop(code: number): void {
		for (const socket of this.#ready) socket.close(code);
		this.#ready.clear();
	}

	async close(): Promise<void> {
		for (const socket of this.#sockets.clients) socket.terminate();
		await new Promise<void>((resolve) => this.#sockets.close(() => resolve()));
	}

	#connect(socket: WebSocket): void {
		say(socket, { op: 10, d: { heartbeat_interval: 40_000 } });
		socket.on("message", (raw: Buffer) => {
			const { op, d } = JSON.parse(raw.toString("utf8"));
			if (op === 1) say(socket, { op: 11 });
			else if (op === 2) this.#identify(socket, d);
			else if (op === 6) this.#resume(socket, d);
		});
		socket.on("close", (code) => {
			this.#ready.delete(socket);
			// A normal close ends the session.
			if (code === 1000 || code === 1001) this.#session = undefined;
		});
	}

	#identify(socket: WebSocket, data: { token: string; intents: number }): void {
		const { token, messageContent, me } = this.#rules;
		if (data.token !== token) {
			socket.close(4004, "Authentication failed.");
			return;
		}
		if ((data.intents & CONTENT_INTENT) !== 0 && !messageContent) {
			socket.close(4014, "Disallowed intent(s).");
			return;
		}
		this.begun.push("identify");
		const id = `session-${this.begun.length}`;
		this.#session = { id, events: [] };
		this.#arrived(socket);
		const { port } = this.#server.address() as { port: number };
		const resume_gateway_url = `ws://127.0.0.1:${port}`;
		say(socket, this.#record("READY", { v: 10, user: me, guilds: [], session_id: id, resume_gateway_url }));
	}

	#resume(socket: WebSocket, data: { token: string; session_id: string; seq: number }): void {
		const session = this.#session;
		if (!session || data.session_id !== session.id) {
			say(socket, { op: 9, d: false });
			return;
		}
		this.begun.push("resume");
		for (const event of session.events.slice(data.seq)) say(socket, event);
		this.#arrived(socket);
		say(socket, this.#record("RESUMED", {}));
	}

	#arrived(socket: WebSocket): void {
		this.#ready.add(socket);
		for (const resolve of this.#arrivals.splice(0)) resolve();
	}

	#record(type: string, data: unknown): Event {
		const events = this.#session?.events ?? [];
		const event: Event = { op: 0, t: type, s: events.length + 1, d: data };
		events.push(event);
		return event;
	}
}
