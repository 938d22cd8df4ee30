/** Discord's gateway: hello, identify, heartbeats, and sessions that can be resumed from a sequence number. */

import type { Server } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";

const CONTENT_INTENT = 1 << 15;

export interface GatewayRules {
	token: string;
	me: object;
	messageContent: boolean;
}

export interface FakeGateway {
	dispatch(type: string, data: unknown): void;
	/** How connections began, in order. */
	readonly begun: ("identify" | "resume")[];
	readonly connections: number;
	/** Resolves when there is one. */
	connected(): Promise<void>;
	/** Closes every connection; nothing goes through any of them after it. */
	drop(code: number): void;
	close(): Promise<void>;
}

interface Event {
	op: 0;
	t: string;
	s: number;
	d: unknown;
}

export function createGateway(server: Server, rules: GatewayRules): FakeGateway {
	const sockets = new WebSocketServer({ server });
	const ready = new Set<WebSocket>();
	const begun: ("identify" | "resume")[] = [];
	const arrivals: (() => void)[] = [];
	const arrived = (socket: WebSocket) => {
		ready.add(socket);
		for (const resolve of arrivals.splice(0)) resolve();
	};
	// One session: everything since its beginning.
	let session: { id: string; events: Event[] } | undefined;

	const say = (socket: WebSocket, payload: object) => socket.send(JSON.stringify(payload));

	function record(type: string, data: unknown): Event {
		const event: Event = { op: 0, t: type, s: (session?.events.length ?? 0) + 1, d: data };
		session?.events.push(event);
		return event;
	}

	function identify(socket: WebSocket, data: { token: string; intents: number }): void {
		if (data.token !== rules.token) {
			socket.close(4004, "Authentication failed.");
			return;
		}
		if ((data.intents & CONTENT_INTENT) !== 0 && !rules.messageContent) {
			socket.close(4014, "Disallowed intent(s).");
			return;
		}
		begun.push("identify");
		session = { id: `session-${begun.length}`, events: [] };
		arrived(socket);
		const { port } = server.address() as { port: number };
		const resume_gateway_url = `ws://127.0.0.1:${port}`;
		say(socket, record("READY", { v: 10, user: rules.me, guilds: [], session_id: session.id, resume_gateway_url }));
	}

	function resume(socket: WebSocket, data: { token: string; session_id: string; seq: number }): void {
		if (!session || data.session_id !== session.id) {
			say(socket, { op: 9, d: false });
			return;
		}
		begun.push("resume");
		for (const event of session.events.slice(data.seq)) say(socket, event);
		arrived(socket);
		say(socket, record("RESUMED", {}));
	}

	sockets.on("connection", (socket) => {
		say(socket, { op: 10, d: { heartbeat_interval: 40_000 } });
		socket.on("message", (raw: Buffer) => {
			const { op, d } = JSON.parse(raw.toString("utf8"));
			if (op === 1) say(socket, { op: 11 });
			else if (op === 2) identify(socket, d);
			else if (op === 6) resume(socket, d);
		});
		socket.on("close", (code) => {
			ready.delete(socket);
			// A normal close ends the session.
			if (code === 1000 || code === 1001) session = undefined;
		});
	});

	return {
		begun,
		get connections() {
			return ready.size;
		},
		async connected() {
			if (ready.size === 0) await new Promise<void>((resolve) => arrivals.push(resolve));
		},
		dispatch(type, data) {
			const event = record(type, data);
			for (const socket of ready) say(socket, event);
		},
		drop(code) {
			for (const socket of ready) socket.close(code);
			ready.clear();
		},
		async close() {
			for (const socket of sockets.clients) socket.terminate();
			await new Promise<void>((resolve) => sockets.close(() => resolve()));
		},
	};
}
