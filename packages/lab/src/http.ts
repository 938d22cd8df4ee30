/** The HTTP side of a fake platform: reads requests whole, fails on demand, records every call. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import { createFaults, type Fake, type FakeCall, type FakeFault, type FakeOptions } from "./fake.ts";

/** A caller that keeps another time than this process says which. */
export const TIME_HEADER = "x-test-time";

export interface FakeRequest {
	method: string;
	path: string;
	query: URLSearchParams;
	headers: Record<string, string>;
	body: Buffer;
	/** The body as an object, when it is JSON. */
	json: Record<string, unknown>;
	/** When the caller made the call, by its own clock if it says so: what it did at the right time must not look early or late here. */
	at: number;
	/** Aborted when the caller has gone away. */
	gone: AbortSignal;
}

export interface FakeReply {
	status: number;
	headers?: Record<string, string>;
	body?: string | Buffer | object;
}

/** Thrown by a handler: the platform refuses the call with this reply. */
export class FakeRefusal extends Error {
	readonly reply: FakeReply;

	constructor(message: string, reply: FakeReply) {
		super(message);
		this.reply = reply;
	}
}

export interface FakeHandlers extends FakeOptions {
	/** The name of the call in `calls` and in `fault({call})`; undefined = not recorded and never faulty. */
	name(request: FakeRequest): { name: string; to: string; body?: unknown } | undefined;
	/** May throw a refusal. */
	handle(request: FakeRequest): FakeReply | Promise<FakeReply>;
	/** Answers a request itself, before its body is read; false when the request is not of that kind. */
	stream?(incoming: IncomingMessage, response: ServerResponse): boolean;
	/** How the platform says 429 or 5xx. */
	refuse(fault: FakeFault, request: FakeRequest): FakeReply;
}

export interface FakeHttp extends Pick<Fake, "url" | "begun" | "calls" | "fault" | "close"> {
	readonly server: Server;
}

export async function serveFake(handlers: FakeHandlers): Promise<FakeHttp> {
	const { clock = systemClock } = handlers;
	const faults = createFaults();
	const calls: FakeCall[] = [];
	const begun = clock.now();
	const server = createServer((incoming, response) => {
		if (handlers.stream?.(incoming, response)) return;
		answer(incoming, response).catch((cause) => {
			if (!response.headersSent) send(response, { status: 500, body: `fake failed: ${String(cause)}` });
		});
	});

	async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
		const request = await readRequest(incoming, response, clock);
		const named = handlers.name(request);
		if (!named) return send(response, await handle(handlers, request));
		const asked = clock.now();
		const fault = faults.next(named.name);
		const record = (status: number) => {
			const call: FakeCall = { body: request.json, ...named, at: request.at - begun, status };
			if (fault && fault.kind !== "watched") call.fault = fault.kind;
			response.once("close", () => Object.assign(call, { ms: clock.now() - asked }));
			calls.push(call);
		};
		const { watch } = fault ?? {};
		if (watch?.arrived(named.name) === "lost") return record(0);
		if (watch) response.once("finish", () => watch.answered(named.name));
		if (fault?.kind === "hang" || fault?.kind === "reset_before") {
			record(0);
			if (fault.kind === "reset_before") incoming.socket.destroy();
			return;
		}
		if (fault?.kind === "429" || fault?.kind === "5xx") {
			const refusal = handlers.refuse(fault, request);
			record(refusal.status);
			return send(response, refusal);
		}
		if (fault?.kind === "gateway") {
			record(0);
			return send(response, foreign(fault));
		}
		const reply = await handle(handlers, request);
		record(reply.status);
		if (fault?.kind === "reset_after_accept") return void incoming.socket.destroy();
		if (fault?.kind === "foreign") return send(response, foreign(fault));
		if (fault?.kind === "slow") await sleep(clock, fault.ms ?? 200);
		send(response, reply);
	}

	// A server that closes an idle connection may meet the next call on it, which is then lost without a fault.
	server.keepAliveTimeout = 0;
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		server,
		begun,
		calls,
		fault: (fault) => faults.set(fault),
		async close() {
			server.closeAllConnections();
			await new Promise<void>((resolve) => server.close(() => resolve()));
		},
	};
}

async function handle(handlers: FakeHandlers, request: FakeRequest): Promise<FakeReply> {
	try {
		return await handlers.handle(request);
	} catch (cause) {
		if (cause instanceof FakeRefusal) return cause.reply;
		throw cause;
	}
}

function foreign({ answer = { status: 502, body: { message: "upstream" } } }: FakeFault): FakeReply {
	const headers: Record<string, string> = typeof answer.body === "string" ? { "content-type": "text/html" } : {};
	return { ...answer, headers: { ...headers, ...answer.headers } };
}

async function readRequest(incoming: IncomingMessage, response: ServerResponse, clock: Clock): Promise<FakeRequest> {
	const gone = new AbortController();
	response.once("close", () => gone.abort());
	const chunks: Buffer[] = [];
	for await (const chunk of incoming) chunks.push(chunk as Buffer);
	const body = Buffer.concat(chunks);
	const url = new URL(incoming.url ?? "/", "http://fake");
	const headers = Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
	return {
		method: incoming.method ?? "GET",
		path: url.pathname,
		query: url.searchParams,
		headers,
		body,
		json: jsonOf(headers["content-type"] ?? "", body),
		at: Number(headers[TIME_HEADER] ?? clock.now()),
		gone: gone.signal,
	};
}

function jsonOf(contentType: string, body: Buffer): Record<string, unknown> {
	if (!contentType.includes("json") || body.length === 0) return {};
	try {
		return JSON.parse(body.toString("utf8"));
	} catch {
		// A platform answers this with its own error; to the fake it is a body without fields.
		return {};
	}
}

function send(response: ServerResponse, { status, headers = {}, body }: FakeReply): void {
	const raw = typeof body === "string" || Buffer.isBuffer(body) || body === undefined;
	const type = raw ? {} : { "content-type": "application/json" };
	response.writeHead(status, { ...type, ...headers });
	response.end(raw ? body : JSON.stringify(body));
}

export interface FormPart {
	name: string;
	filename?: string;
	contentType?: string;
	data: Buffer;
}

/** multipart/form-data, as leniently as platforms read it. */
export function readForm(request: Pick<FakeRequest, "headers" | "body">): FormPart[] {
	const boundary = /boundary="?([^";]+)/.exec(request.headers["content-type"] ?? "")?.[1];
	if (boundary === undefined) return [];
	const text = request.body.toString("latin1");
	const parts: FormPart[] = [];
	for (const piece of text.split(`--${boundary}`).slice(1, -1)) {
		const split = piece.indexOf("\r\n\r\n");
		const head = Buffer.from(piece.slice(0, split), "latin1").toString("utf8");
		const data = Buffer.from(piece.slice(split + 4).replace(/\r\n$/, ""), "latin1");
		const field = (pattern: RegExp) => pattern.exec(head)?.[1]?.trim();
		const filename = field(/filename="?([^"\r\n;]+)/i);
		const contentType = field(/content-type:\s*([^\r\n]+)/i);
		parts.push({ name: field(/[^e]name="?([^"\r\n;]+)/i) ?? "", filename, contentType, data });
	}
	return parts;
}

export type Rate = readonly [capacity: number, refillMs: number];

/** Buckets of calls by key: `capacity` at once, one more every `refillMs`. */
export class Buckets {
	readonly #buckets = new Map<string, { level: number; at: number }>();

	/** 0 = taken; else how many milliseconds to wait. */
	take(key: string, [capacity, refillMs]: Rate, now: number): number {
		const bucket = this.#buckets.get(key) ?? { level: capacity, at: now };
		this.#buckets.set(key, bucket);
		// Calls may arrive in another order than they were made in.
		bucket.level = Math.min(capacity, bucket.level + Math.max(0, now - bucket.at) / refillMs);
		bucket.at = Math.max(bucket.at, now);
		if (bucket.level < 1) return Math.ceil((1 - bucket.level) * refillMs);
		bucket.level -= 1;
		return 0;
	}
}

/** A field that should be a text. */
export const word = (value: unknown): string => (typeof value === "string" ? value : "");

export const ok = (body: object): FakeReply => ({ status: 200, body });

export class Chats<Message> {
	readonly #chats = new Map<string, Message[]>();

	of(chat: string): readonly Message[] {
		return this.#chats.get(chat) ?? [];
	}

	add(chat: string, message: Message): void {
		this.#chats.set(chat, [...this.of(chat), message]);
	}

	/** Whether there was such a message. */
	remove(chat: string, isIt: (message: Message) => boolean): boolean {
		const rest = this.of(chat).filter((each) => !isIt(each));
		const found = rest.length < this.of(chat).length;
		this.#chats.set(chat, rest);
		return found;
	}
}
