/** A signal-cli daemon with `--http`: JSON-RPC, an event stream that can be resumed, edits, typing, attachments. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Fake, FakeOptions } from "./fake.ts";
import { Buckets, Chats, type FakeReply, type FakeRequest, ok, type Rate, serveFake, word } from "./http.ts";

export const SIGNAL_NUMBER = "+15005550100";
export const SIGNAL_UUID = "00000000-0000-4000-8000-000000000100";

export interface SignalMessage {
	/** All its times, the newest last: an edit may refer to any of them. */
	timestamps: number[];
	text: string;
	quote?: { timestamp: number; author: string };
	file?: { name: string; contentType: string; data: Buffer };
}

export interface SignalFakeOptions extends FakeOptions {
	rate?: Rate;
	/** Signal refuses to look numbers up. */
	lookup?: false;
}

export interface SignalFake extends Fake {
	raw(to: string): SignalMessage[];
	isTyping(to: string): boolean;
	readonly listeners: number;
	dropEvents(): void;
	/** An envelope as it is, to everybody who listens. */
	push(envelope: object): void;
}

interface World {
	chats: Chats<SignalMessage>;
	typing: Set<string>;
	files: Map<string, Buffer>;
	events: { id: number; data: string }[];
	listeners: Set<ServerResponse>;
	buckets: Buckets;
	rate: Rate;
	/** Every message has its own time. */
	timestamp: number;
	lookup: boolean;
	clock: Clock;
}

class Refusal extends Error {
	readonly code: number;
	readonly type: string | undefined;

	constructor(code: number, message: string, type?: string) {
		super(message);
		this.code = code;
		this.type = type;
	}
}

type Params = Record<string, unknown>;

const RUN = "1700000000000";

export async function createSignalFake(options: SignalFakeOptions = {}): Promise<SignalFake> {
	const { clock = systemClock } = options;
	const world: World = {
		chats: new Chats(),
		typing: new Set(),
		files: new Map(),
		events: [],
		listeners: new Set(),
		buckets: new Buckets(),
		rate: options.rate ?? [60, 100],
		timestamp: clock.now(),
		lookup: options.lookup ?? true,
		clock,
	};
	const http = await serveFake({
		clock,
		name: ({ path, json }) => {
			if (path !== "/api/v1/rpc" || json.method === "getUserStatus") return undefined;
			const params = (json.params ?? {}) as Params;
			const name = `${String(json.method)}${params.editTimestamp === undefined ? "" : " edit"}`;
			return { name, to: placeOf(params), body: params };
		},
		handle: (request) => handle(world, request),
		stream: (incoming, response) => listen(world, incoming, response),
		refuse: ({ kind, ms = 1000 }, request) => {
			if (kind !== "429") return { status: 500 };
			return failure(request, new Refusal(-5, "Failed to send message due to rate limiting", "RATE_LIMIT_FAILURE"), ms);
		},
	});
	const drop = () => {
		for (const response of world.listeners) response.destroy();
		world.listeners.clear();
	};
	const push = (envelope: object) => publish(world, envelope);
	return {
		...http,
		close() {
			drop();
			return http.close();
		},
		settings: { number: SIGNAL_NUMBER, api_url: http.url },
		raw: (to) => [...world.chats.of(to)],
		visible: (to) => world.chats.of(to).map(({ text }) => text),
		isTyping: (to) => world.typing.has(to),
		get listeners() {
			return world.listeners.size;
		},
		dropEvents: drop,
		push,
		inject: (message) => push(envelopeOf(world, message)),
	};
}

function envelopeOf(world: World, message: Parameters<Fake["inject"]>[0]): object {
	const { text, from = "+15551230001", to, file, fileName, ...extra } = message;
	const id = `file${world.files.size + 1}.bin`;
	if (file) world.files.set(id, file as Buffer);
	const timestamp = ++world.timestamp;
	const attachment = { id, contentType: "text/plain", filename: fileName ?? null, size: (file as Buffer)?.length };
	return {
		source: from,
		sourceNumber: from,
		sourceUuid: `uuid-of-${from}`,
		sourceName: "Ann",
		sourceDevice: 1,
		timestamp,
		dataMessage: {
			timestamp,
			message: text,
			expiresInSeconds: 0,
			viewOnce: false,
			groupInfo: to?.startsWith("group:") ? { groupId: to.slice(6), groupName: "Team", type: "DELIVER" } : undefined,
			attachments: file ? [attachment] : undefined,
			...extra,
		},
	};
}

/** A quiet daemon is not a dead one. */
const KEEP_ALIVE_MS = 15_000;

function listen(world: World, { url = "", headers }: IncomingMessage, response: ServerResponse): boolean {
	const { pathname, searchParams } = new URL(url, "http://fake");
	if (pathname !== "/api/v1/events") return false;
	if (searchParams.get("account") !== SIGNAL_NUMBER) {
		response.writeHead(400).end();
		return true;
	}
	const after = headers["last-event-id"];
	response.writeHead(200, { "content-type": "text/event-stream" });
	response.write(":\n");
	// An id of another run brings everything that is kept.
	const known = String(after ?? "");
	const last = known.startsWith(`${RUN}-`) ? Number(known.slice(RUN.length + 1)) : 0;
	if (after !== undefined) for (const event of world.events) if (event.id > last) write(response, event);
	world.listeners.add(response);
	let cancel = () => {};
	const keepAlive = () => {
		cancel = world.clock.after(KEEP_ALIVE_MS, () => {
			response.write(":\n");
			keepAlive();
		});
	};
	keepAlive();
	response.once("close", () => {
		cancel();
		world.listeners.delete(response);
	});
	return true;
}

const write = (response: ServerResponse, { id, data }: { id: number; data: string }) =>
	response.write(`id:${RUN}-${id}\nevent:receive\ndata:${data}\n\n`);

function publish(world: World, envelope: object): void {
	const event = { id: world.events.length + 1, data: JSON.stringify({ envelope, account: SIGNAL_NUMBER }) };
	world.events.push(event);
	for (const response of world.listeners) write(response, event);
}

const placeOf = ({ recipient, groupId }: Params): string =>
	groupId === undefined ? String(Array.isArray(recipient) ? recipient[0] : recipient) : `group:${word(groupId)}`;

function failure({ json }: FakeRequest, { code, message, type }: Refusal, retryAfterMs?: number): FakeReply {
	const results = type
		? [{ type, retryAfterSeconds: retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000) }]
		: undefined;
	const data = results ? { response: { timestamp: 1, results } } : null;
	return ok({ jsonrpc: "2.0", id: json.id ?? null, error: { code, message, data } });
}

function handle(world: World, request: FakeRequest): FakeReply {
	if (request.path === "/api/v1/check") return { status: 200 };
	if (request.path !== "/api/v1/rpc") return { status: 404 };
	if (request.method !== "POST") return { status: 405 };
	if (!request.headers["content-type"]?.startsWith("application/json")) return { status: 415 };
	const { id, method, params = {} } = request.json as { id: string; method: string; params?: Params };
	try {
		if (params.account !== SIGNAL_NUMBER) throw new Refusal(-32602, "Specified account does not exist");
		return ok({ jsonrpc: "2.0", id, result: call(world, method, params, request.at) });
	} catch (cause) {
		if (cause instanceof Refusal) return failure(request, cause, cause.code === -5 ? 1000 : undefined);
		throw cause;
	}
}

function call(world: World, method: string, params: Params, at: number): unknown {
	switch (method) {
		case "getUserStatus":
			if (!world.lookup) throw new Refusal(-3, "Unable to check if users are registered");
			return (params.recipient as string[]).map((number) => ({
				recipient: number,
				number,
				uuid: number === SIGNAL_NUMBER ? SIGNAL_UUID : null,
				isRegistered: number === SIGNAL_NUMBER,
			}));
		case "getAttachment": {
			const data = world.files.get(String(params.id));
			if (!data) throw new Refusal(-1, `Could not find attachment with ID: ${String(params.id)}`);
			return { data: data.toString("base64") };
		}
		case "sendTyping":
			if (params.stop === true) world.typing.delete(placeOf(params));
			else world.typing.add(placeOf(params));
			return { timestamp: ++world.timestamp, results: [{ type: "SUCCESS" }] };
		case "send":
			return send(world, params, at);
		default:
			throw new Refusal(-32601, "Method not implemented");
	}
}

function send(world: World, params: Params, at: number): unknown {
	const to = placeOf(params);
	const files = (params.attachments as string[] | undefined) ?? [];
	const text = word(params.message);
	if (to === "+404") throw new Refusal(-1, "The user +404 is not registered.");
	if (to === "group:404") throw new Refusal(-1, "Group not found: 404");
	if (to === "+403") throw new Refusal(-4, "Failed to send message due to untrusted identities", "IDENTITY_FAILURE");
	if (to === "+503") throw new Refusal(-1, "Failed to send message", "NETWORK_FAILURE");
	if (to === "+410") return { timestamp: ++world.timestamp, results: [{ type: "UNREGISTERED_FAILURE" }] };
	if (text === "" && files.length === 0) throw new Refusal(-1, "Sending empty message is not allowed");
	if (world.buckets.take("account", world.rate, at) > 0) throw new Refusal(-5, "Rate limited", "RATE_LIMIT_FAILURE");
	const timestamp = ++world.timestamp;
	if (params.editTimestamp !== undefined) edit(world, to, Number(params.editTimestamp), text, timestamp);
	else put(world, to, { timestamps: [timestamp], text, ...quoteOf(params), ...fileOf(files[0]) });
	return { timestamp, results: [{ recipientAddress: { number: to }, type: "SUCCESS" }] };
}

function put(world: World, to: string, message: SignalMessage): void {
	// A long text becomes an attachment: people see its beginning.
	const bytes = Buffer.from(message.text);
	const shown = bytes.length > 2000 ? `${bytes.subarray(0, 2000).toString()}…` : message.text;
	world.typing.delete(to);
	world.chats.add(to, { ...message, text: shown });
}

/** Like people's apps: an edit of something unknown is dropped without a word. */
function edit(world: World, to: string, target: number, text: string, timestamp: number): void {
	const message = world.chats.of(to).find(({ timestamps }) => timestamps.includes(target));
	if (!message || message.timestamps.length > 100) return;
	message.text = text;
	message.timestamps.push(timestamp);
}

const quoteOf = ({ quoteTimestamp, quoteAuthor }: Params) =>
	quoteTimestamp === undefined ? {} : { quote: { timestamp: Number(quoteTimestamp), author: String(quoteAuthor) } };

function fileOf(uri: string | undefined): Pick<SignalMessage, "file"> {
	if (uri === undefined) return {};
	const parts = /^data:([\w.+-]+\/[\w.+-]+)(?:;filename=([^;,]+))?;base64,(.*)$/.exec(uri);
	if (!parts) throw new Refusal(-1, "Failed to send message: invalid data URI (AttachmentInvalidException)");
	const [, contentType = "", name = "", data = ""] = parts;
	return { file: { name, contentType, data: Buffer.from(data, "base64") } };
}
