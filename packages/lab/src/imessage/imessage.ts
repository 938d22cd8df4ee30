/** A Mac with Messages: BlueBubbles' REST interface, and what the fake imsg program (imsg.ts) asks of it. */

import { join } from "node:path";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Fake } from "../fake.ts";
import { type FakeHttp, type FakeReply, type FakeRequest, readForm, serveFake } from "../http.ts";

/** The account's own: what is sent there comes back as if somebody else had written it. */
export const OWN_CHAT = "iMessage;-;+15559990000";

export const BLUEBUBBLES_PASSWORD = "fake-password";

export interface IMessageMessage {
	row: number;
	guid: string;
	chat: string;
	text: string;
	fromMe: boolean;
	handle: string;
	created: number;
	/** imsg: how far everything has been told, when that is not this row. */
	cursor?: number;
	replyTo?: string;
	file?: { name: string; contentType: string; data: Buffer; path?: string };
}

export interface IMessageFake extends Fake {
	raw(to: string): IMessageMessage[];
	/** For the setting `imsg_command`. */
	readonly imsgCommand: string;
	/** A message as BlueBubbles tells of it. */
	wire(message: IMessageMessage): object;
	/** Everything that was said, by whomever. */
	readonly messages: IMessageMessage[];
	/** What is being sent. */
	readonly sending: ReadonlySet<string>;
}

export interface IMessageFakeOptions {
	privateApi?: boolean;
	/** Messages has not sent anything before this; a second try meanwhile is refused. */
	sent?: Promise<void>;
	/** What time it is here. */
	clock?: Clock;
}

interface World {
	http: FakeHttp;
	messages: IMessageMessage[];
	sending: Set<string>;
	/** The imsg process that has a send that hangs. */
	blocked: string | undefined;
	options: Required<IMessageFakeOptions>;
}

class Refusal extends Error {
	readonly status: number;
	readonly type: string;
	readonly data: object | undefined;

	constructor(status: number, type: string, message: string, data?: object) {
		super(message);
		this.status = status;
		this.type = type;
		this.data = data;
	}
}

/** A field that should be a text. */
const word = (value: unknown): string => (typeof value === "string" ? value : "");

export async function createIMessageFake(options: IMessageFakeOptions = {}): Promise<IMessageFake> {
	const world: World = {
		http: undefined as unknown as FakeHttp,
		messages: [],
		sending: new Set(),
		blocked: undefined,
		options: { privateApi: false, sent: Promise.resolve(), clock: systemClock, ...options },
	};
	world.http = await serveFake({
		clock: world.options.clock,
		name(request) {
			if (request.path === "/imsg") {
				const { method, params = {} } = request.json as { method: string; params?: Record<string, unknown> };
				return { name: method, to: word(params.chat_guid ?? params.to), body: params };
			}
			const name = request.path.replace("/api/v1/", "");
			if (!/^message\/(?:text|attachment|query)$/.test(name)) return undefined;
			const body = fieldsOf(request);
			// Polling is not what a test wants to disturb.
			return body.where === undefined ? { name, to: word(body.chatGuid), body } : undefined;
		},
		handle: (request) => (request.path.startsWith("/imsg") ? handleImsg(world, request) : handle(world, request)),
		refuse: ({ kind }) => {
			if (kind === "429") return failure(new Refusal(429, "Error", "slow down"));
			return failure(new Refusal(500, "Server Error", ""));
		},
	});
	const ours = (to: string) => world.messages.filter(({ chat, fromMe }) => fromMe && chat === to);
	return {
		url: world.http.url,
		begun: world.http.begun,
		calls: world.http.calls,
		fault: world.http.fault,
		close: world.http.close,
		messages: world.messages,
		sending: world.sending,
		imsgCommand: `${process.execPath} --conditions=nexus-source ${join(import.meta.dirname, "imsg.ts")} ${world.http.url}`,
		raw: ours,
		visible: (to) => ours(to).map(({ text }) => text),
		wire: (message) => wire(message),
		inject({ text, from = "+15551230001", to, file, fileName, filePath, cursor, at }) {
			const chat = to ?? `iMessage;-;${from}`;
			const data = file as Buffer | undefined;
			const path = filePath as string | undefined;
			const named = { name: word(fileName ?? "note.txt"), contentType: "text/plain", path: path || undefined };
			const stamps = {
				cursor: typeof cursor === "number" ? cursor : undefined,
				created: typeof at === "number" ? at : undefined,
			};
			put(world, { chat, text, fromMe: false, handle: from, ...stamps, ...(data ? { file: { ...named, data } } : {}) });
		},
	};
}

type Put = Omit<IMessageMessage, "row" | "guid" | "created"> & { created?: number };

function put(world: World, given: Put): IMessageMessage {
	const row = world.messages.length + 1;
	const { created = world.options.clock.now() } = given;
	const message = { ...given, row, guid: `GUID-${String(row).padStart(4, "0")}`, created };
	world.messages.push(message);
	return message;
}

function putSent(world: World, given: Omit<Put, "fromMe" | "handle">): IMessageMessage {
	const made = put(world, { ...given, fromMe: true, handle: "" });
	const { chat, text, file } = made;
	if (chat === OWN_CHAT) put(world, { chat, text, fromMe: false, handle: "+15559990000", ...(file ? { file } : {}) });
	return made;
}

/** Chats with their own fate are named in full: `+15551231022` is like any other. */
const isOf = (chat: string, who: string): boolean => chat === who || chat.endsWith(`;${who}`);

const isGroup = (chat: string): boolean => chat.includes(";+;");

function wire(message: IMessageMessage, withFiles = true): object {
	const { row, guid, chat, text, fromMe, handle, created, file } = message;
	const attachment = file && {
		guid: `at_${guid}`,
		mimeType: file.contentType,
		transferName: file.name,
		totalBytes: file.data.length,
		hideAttachment: false,
	};
	return {
		originalROWID: row,
		guid,
		text: file ? `\uFFFC${text}` : text,
		isFromMe: fromMe,
		handle: fromMe ? null : { address: handle, service: "iMessage" },
		chats: [{ guid: chat, style: isGroup(chat) ? 43 : 45, displayName: isGroup(chat) ? "Team" : "" }],
		attachments: attachment && withFiles ? [attachment] : [],
		dateCreated: created,
		dateRetracted: null,
		itemType: 0,
		associatedMessageGuid: null,
		error: 0,
	};
}

const success = (data: unknown, message = "Success"): FakeReply => ({
	status: 200,
	body: { status: 200, message, data },
});

const failure = ({ status, type, message, data }: Refusal): FakeReply => ({
	status,
	body: { status, message: "Refused", error: { type, message }, ...(data ? { data } : {}) },
});

function fieldsOf(request: FakeRequest): Record<string, unknown> {
	const form = readForm(request);
	if (form.length === 0) return request.json;
	return Object.fromEntries(
		form.filter((part) => part.filename === undefined).map((part) => [part.name, part.data.toString()]),
	);
}

async function handle(world: World, request: FakeRequest): Promise<FakeReply> {
	try {
		const secret = request.query.get("password") ?? request.query.get("guid") ?? request.query.get("token");
		if (secret !== BLUEBUBBLES_PASSWORD) throw new Refusal(401, "Authentication Error", "Wrong password");
		return await route(world, request);
	} catch (cause) {
		if (cause instanceof Refusal) return failure(cause);
		throw cause;
	}
}

async function route(world: World, request: FakeRequest): Promise<FakeReply> {
	const path = request.path.replace("/api/v1/", "");
	if (path === "server/info") {
		return success({ server_version: "1.9.9", os_version: "15.1", private_api: world.options.privateApi });
	}
	if (path === "message/query") return query(world, request.json);
	if (path === "message/text") return success(await send(world, request.json, undefined), "Message sent!");
	if (path === "message/attachment") {
		const part = readForm(request).find(({ filename }) => filename !== undefined);
		const fields = fieldsOf(request);
		if (!part || part.data.length === 0)
			throw new Refusal(400, "Validation Error", "Attachment not provided or was empty!");
		const file = { name: String(fields.name), contentType: part.contentType ?? "", data: part.data };
		return success(await send(world, fields, file), "Attachment sent!");
	}
	const download = /^attachment\/at_([^/]+)\/download$/.exec(path);
	const file = download && world.messages.find(({ guid }) => guid === download[1])?.file;
	if (!file) throw new Refusal(404, "Database Error", "Attachment does not exist!");
	return { status: 200, headers: { "content-type": file.contentType }, body: file.data };
}

function query(world: World, params: Record<string, unknown>): FakeReply {
	const { chatGuid, after = 0, sort = "DESC", limit = 100 } = params;
	const row = (params.where as [{ statement: string; args: { row: number } }] | undefined)?.[0].args.row ?? 0;
	if (chatGuid !== undefined && !world.messages.some(({ chat }) => chat === chatGuid)) {
		return success([], `No chat found with GUID: ${word(chatGuid)}`);
	}
	const found = world.messages.filter(
		(each) => (chatGuid === undefined || each.chat === chatGuid) && each.created >= Number(after) && each.row > row,
	);
	// Files are told of only to who asks.
	const withFiles = ((params.with as string[] | undefined) ?? []).includes("attachments");
	const page = (sort === "DESC" ? found.toReversed() : found).slice(0, Number(limit));
	return success(page.map((each) => wire(each, withFiles)));
}

async function send(world: World, fields: Record<string, unknown>, file: IMessageMessage["file"]): Promise<object> {
	const [chat, text, temp] = [word(fields.chatGuid), word(fields.message), word(fields.tempGuid)];
	const invalid = (reason: string) => new Refusal(400, "Validation Error", reason);
	if (chat === "") throw invalid("The chatGuid field is required.");
	if (!["apple-script", "private-api"].includes(String(fields.method)))
		throw invalid("The selected method is invalid.");
	const privately = fields.method === "private-api" || fields.selectedMessageGuid !== undefined;
	if (!privately && temp === "") throw invalid("A 'tempGuid' is required when sending via AppleScript");
	if (text === "" && !file) throw invalid("A 'message' is required when sending via AppleScript");
	if (world.sending.has(temp)) throw invalid(`Message is already queued to be sent! (Temp GUID: ${temp})`);
	if (privately && !world.options.privateApi) throw new Refusal(500, "iMessage Error", "Private API is not enabled!");
	if (isOf(chat, "chat404")) throw new Refusal(500, "iMessage Error", "Chat does not exist!");
	if (isOf(chat, "+15550022")) throw new Refusal(500, "iMessage Error", "Failed to send message!", { error: 22 });
	world.sending.add(temp);
	await world.options.sent;
	const replyTo = fields.selectedMessageGuid === undefined ? {} : { replyTo: word(fields.selectedMessageGuid) };
	const made = putSent(world, { chat, text, ...replyTo, file });
	world.sending.delete(temp);
	return { ...wire(made), tempGuid: temp };
}

const imsgWire = (message: IMessageMessage, withFiles = true): object => {
	const { row, guid, chat, text, fromMe, handle, created, file, cursor = row } = message;
	const attachment = file && {
		transfer_name: file.name,
		mime_type: file.contentType,
		byte_size: file.data.length,
		missing: false,
		path: file.path,
	};
	return {
		id: row,
		cursor,
		chat_id: 7,
		chat_guid: chat,
		chat_identifier: chat.split(";").at(-1),
		chat_name: isGroup(chat) ? "Team" : "",
		is_group: isGroup(chat),
		guid,
		sender: handle,
		is_from_me: fromMe,
		text: file ? `\uFFFC${text}` : text,
		created_at: new Date(created).toISOString(),
		attachments: attachment && withFiles ? [attachment] : [],
	};
};

/** imsg refuses what it does not know; `file_name` and `file_data` are how the fake program passes a file on. */
const IMSG_PARAMS: Readonly<Record<string, readonly string[]>> = {
	"chats.list": ["limit"],
	"messages.history": ["chat_id", "limit", "start", "attachments"],
	"watch.subscribe": ["since_rowid", "attachments"],
	send: ["to", "chat_guid", "text", "file", "file_name", "file_data"],
};

const invalidParams = (data: string) => ({ error: { code: -32602, message: "Invalid params", data } });

/** `/imsg` takes a JSON-RPC request, `/imsg/watch?since=` brings messages. */
async function handleImsg(world: World, request: FakeRequest): Promise<FakeReply> {
	if (request.path === "/imsg/watch") {
		const since = request.query.get("since");
		const from = since === null || since === "" ? world.messages.length : Number(since);
		const messages = world.messages.filter(({ row }) => row > from).map((each) => imsgWire(each));
		return { status: 200, body: { from, messages } };
	}
	const { id, method, params } = request.json as { id: string; method: string; params: Record<string, unknown> };
	const answer = (body: object): FakeReply => ({ status: 200, body: { jsonrpc: "2.0", id, ...body } });
	const known = IMSG_PARAMS[method];
	if (!known) return answer({ error: { code: -32601, message: "Method not found", data: method } });
	const unknown = Object.keys(params).find((name) => !known.includes(name));
	if (unknown !== undefined) return answer(invalidParams(`unknown parameter: ${unknown}`));
	switch (method) {
		case "chats.list":
			return answer({
				result: {
					chats: world.messages.slice(-1).map((each) => ({ id: 7, guid: each.chat, identifier: each.handle })),
				},
			});
		case "messages.history":
			if (params.chat_id !== 7) return answer(invalidParams("chat_id is required"));
			return answer({ result: { messages: imsgHistory(world, params) } });
		case "watch.subscribe":
			return answer({ result: { subscription: 1, buffer_limit: 256 } });
		default:
			return answer(imsgSend(world, params, request.headers["x-process"] ?? ""));
	}
}

/** Newest first. */
const imsgHistory = ({ messages }: World, { limit = 50, start, attachments }: Record<string, unknown>): object[] =>
	messages
		.filter(({ created }) => start === undefined || created >= Date.parse(word(start)))
		.toReversed()
		.slice(0, Number(limit))
		.map((each) => imsgWire(each, attachments === true));

function imsgSend(world: World, params: Record<string, unknown>, process: string): object {
	const chat = word(params.chat_guid ?? `iMessage;-;${word(params.to)}`);
	if (params.text === "") return invalidParams("text or file is required");
	const failure = { transport: "applescript", operation: "send" };
	if (isOf(chat, "chat404")) {
		const data = { retry_safe: true, disposition: "not_started", ...failure, detail: "Chat not found" };
		return { error: { code: -32603, message: "Delivery failed before dispatch", data } };
	}
	if (isOf(chat, "403")) {
		const data = "Not authorized to send Apple events to Messages. (-1743)";
		return { error: { code: -32603, message: "Internal error", data } };
	}
	if (isOf(chat, "hangs")) world.blocked ??= process;
	if (world.blocked === process) {
		const data = {
			retry_safe: false,
			disposition: "still_in_flight",
			...failure,
			detail: "A prior send remains in flight.",
		};
		return { error: { code: -32004, message: "Mutation lane blocked", data } };
	}
	const file = params.file_data
		? { name: word(params.file_name), contentType: "", data: Buffer.from(word(params.file_data), "base64") }
		: undefined;
	const made = putSent(world, { chat, text: word(params.text), file });
	return { result: { ok: true, id: made.row, guid: params.text ? made.guid : undefined } };
}
