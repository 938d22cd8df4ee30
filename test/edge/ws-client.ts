/** A WebSocket client that keeps what it was sent, and is closed with its test. */

import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { BEARER, waitFor } from "./rig.ts";

interface Message {
	type: string;
	id?: string;
	after?: number;
	first?: number;
	frames?: { type: string; payload?: string }[];
	error?: { code: string; message: string };
}

export interface Client {
	ws: WebSocket;
	messages: Message[];
	closed: Promise<number>;
	send(message: object): void;
	until(done: (messages: Message[]) => boolean): Promise<Message[]>;
	/** Offsets that a subscription got, in order. */
	offsets(id: string): number[];
}

export async function dial(port: number, options: { autoPong?: boolean } = {}): Promise<Client> {
	const ws = new WebSocket(`ws://127.0.0.1:${port}/v1/ws`, { headers: BEARER, ...options });
	onTestFinished(() => ws.terminate());
	const messages: Message[] = [];
	ws.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString()) as Message));
	ws.on("error", () => {});
	const closed = new Promise<number>((resolve) => ws.on("close", resolve));
	await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
	return {
		ws,
		messages,
		closed,
		send: (message) => ws.send(JSON.stringify(message)),
		async until(done) {
			await waitFor(() => done(messages));
			return messages;
		},
		offsets: (id) =>
			messages
				.filter((message) => message.type === "frames" && message.id === id)
				.flatMap(({ first, frames }) => frames!.map((_, index) => first! + index)),
	};
}
