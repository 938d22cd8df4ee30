/** Socket Mode of the fake Slack: envelopes that come again until they are confirmed. */

import { randomUUID } from "node:crypto";
import type { Server } from "node:http";
import { systemClock, within } from "@nexus-stream/protocol/clock";
import { type WebSocket, WebSocketServer } from "ws";

/** Slack waits three seconds for an answer; a test need not. */
const ACK_MS = 1500;
const SOCKET_MS = 60_000;

export function createSockets(server: Server, url: string, ackMs = ACK_MS) {
	const sockets = new WebSocketServer({ server, path: "/link" });
	const open = new Set<WebSocket>();
	const waiting = new Map<string, () => void>();
	const arrivals: (() => void)[] = [];

	sockets.on("connection", (socket) => {
		open.add(socket);
		socket.on("close", () => open.delete(socket));
		socket.on("message", (data: Buffer) => waiting.get(JSON.parse(data.toString("utf8")).envelope_id)?.());
		socket.send(JSON.stringify({ type: "hello", num_connections: open.size }));
		for (const resolve of arrivals.splice(0)) resolve();
	});

	async function connected(): Promise<WebSocket> {
		const arrival = new Promise<void>((resolve) => arrivals.push(resolve));
		if (open.size === 0 && !(await within(systemClock, SOCKET_MS, arrival)))
			throw new Error("no client is connected to Socket Mode");
		// A connection that was lost at once: the next one.
		const [socket] = open;
		return socket ?? connected();
	}

	/** Resolves when it was confirmed. */
	async function deliver(payload: object, type = "events_api"): Promise<void> {
		const envelope_id = randomUUID();
		const confirmed = new Promise<void>((resolve) => waiting.set(envelope_id, resolve));
		for (let retry_attempt = 0; retry_attempt < 4; retry_attempt++) {
			const socket = await connected();
			const more = retry_attempt === 0 ? {} : { retry_reason: "timeout" };
			const envelope = { type, envelope_id, payload, retry_attempt, ...more };
			socket.send(JSON.stringify({ ...envelope, accepts_response_payload: false }));
			if (await within(systemClock, ackMs, confirmed)) return;
		}
		throw new Error("the event was never confirmed");
	}

	const drop = () => {
		for (const socket of open) socket.terminate();
		open.clear();
	};
	return {
		url,
		deliver,
		drop,
		close() {
			drop();
			sockets.close();
		},
	};
}
