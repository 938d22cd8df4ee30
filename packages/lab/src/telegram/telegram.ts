/** A Bot API server: polling and webhooks, HTML entities, the limits on length and speed, files, drafts. */

import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Fake } from "../fake.ts";
import { createBucket, type FakeHttp, type FakeReply, type FakeRequest, readForm, serveFake } from "../http.ts";
import { createPresses, type Keyboard, type Presses, readKeyboard } from "./buttons.ts";
import { type Entity, parseTelegramHtml } from "./html.ts";

export const TELEGRAM_TOKEN = "123456:TEST-token_for_the_fake";
const BOT = { id: 123456, is_bot: true, first_name: "Nexus", username: "nexus_bot" };

export interface TelegramFakeOptions {
	/** Calls that a chat takes at once, and how fast more are allowed. Documented: about one a second, in groups 20 a minute, 30 a second in all. */
	privateRate?: [burst: number, refillMs: number];
	groupRate?: [burst: number, refillMs: number];
	accountRate?: [burst: number, refillMs: number];
	/** The platform's clock. Rate limits use the caller's time. */
	clock?: Clock;
}

export interface TelegramMessage {
	message_id: number;
	chat: string;
	text: string;
	entities: Entity[];
	thread?: number;
	replyTo?: number;
	file?: { name: string; kind: string; data: Buffer };
	buttons: Keyboard[];
	edits: number;
}

export interface TelegramFake extends Fake {
	buttons: NonNullable<Fake["buttons"]>;
	press: NonNullable<Fake["press"]>;
	readonly token: string;
	raw(to: string): TelegramMessage[];
	/** The preview that a person sees now, if any. */
	draft(to: string): string | undefined;
	/** Updates that wait to be fetched. */
	pending(): number;
	/** Makes a group a supergroup with a new id. */
	migrate(from: string, to: string): void;
	remove(to: string, messageId: number): void;
}

interface World {
	http: FakeHttp;
	messages: Map<string, TelegramMessage[]>;
	drafts: Map<string, { id: number; text: string; until: number }>;
	updates: ({ update_id: number } & ({ message: object } | { callback_query: object }))[];
	presses: Presses;
	waiting: (() => void)[];
	files: Map<string, Buffer>;
	migrated: Map<string, string>;
	webhook: { url: string; secret: string; lastError?: string };
	ids: { message: number; update: number };
	buckets: Map<string, ReturnType<typeof createBucket>>;
	options: Required<TelegramFakeOptions>;
}

class Refusal extends Error {
	readonly code: number;
	readonly parameters: object;

	constructor(code: number, description: string, parameters: object = {}) {
		super(description);
		this.code = code;
		this.parameters = parameters;
	}
}

const ok = (result: unknown): FakeReply => ({ status: 200, body: { ok: true, result } });

const refusal = (code: number, description: string, parameters?: object): FakeReply => ({
	status: code,
	body: { ok: false, error_code: code, description, ...(parameters ? { parameters } : {}) },
});

const textOf = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? `${value}` : "");

const isPrivate = (chat: string): boolean => /^\d+$/.test(chat);

export async function createTelegramFake(options: TelegramFakeOptions = {}): Promise<TelegramFake> {
	const world: World = {
		http: undefined as unknown as FakeHttp,
		messages: new Map(),
		drafts: new Map(),
		updates: [],
		presses: createPresses(),
		waiting: [],
		files: new Map(),
		migrated: new Map(),
		webhook: { url: "", secret: "" },
		ids: { message: 100, update: 5000 },
		buckets: new Map(),
		options: { privateRate: [15, 1000], groupRate: [20, 3000], accountRate: [30, 34], clock: systemClock, ...options },
	};
	const { clock } = world.options;
	world.http = await serveFake({
		clock,
		name: (request) => {
			const method = methodOf(request);
			if (!method || method === "getUpdates") return undefined;
			const fields = fieldsOf(request);
			return { name: method, to: textOf(fields.chat_id), body: fields };
		},
		handle: (request) => handle(world, request),
		refuse: ({ kind, ms = 1000 }) => {
			if (kind !== "429") return refusal(500, "Internal Server Error");
			const wait = Math.max(1, Math.ceil(ms / 1000));
			return refusal(429, `Too Many Requests: retry after ${wait}`, { retry_after: wait });
		},
	});
	const of = (to: string) => world.messages.get(to) ?? [];
	return {
		url: world.http.url,
		token: TELEGRAM_TOKEN,
		begun: world.http.begun,
		calls: world.http.calls,
		fault: world.http.fault,
		close() {
			for (const wake of world.waiting.splice(0)) wake();
			return world.http.close();
		},
		raw: of,
		visible: (to) => of(to).map(({ text }) => text),
		draft: (to) => {
			const draft = world.drafts.get(to);
			return draft && draft.until > clock.now() ? draft.text : undefined;
		},
		pending: () => world.updates.length,
		migrate: (from, to) => void world.migrated.set(from, to),
		remove: (to, messageId) =>
			void world.messages.set(
				to,
				of(to).filter((each) => each.message_id !== messageId),
			),
		inject: (message) => inject(world, message),
		buttons: (to) => of(to).map(({ buttons }) => buttons.map(({ text }) => text)),
		press: (to, nth, label, from) => press(world, of(to)[nth], label, from),
	};
}

const methodOf = (request: FakeRequest): string | undefined => /^\/bot[^/]+\/(\w+)$/.exec(request.path)?.[1];

function fieldsOf(request: FakeRequest): Record<string, unknown> {
	const form = readForm(request).filter(({ filename }) => filename === undefined);
	if (form.length === 0) return request.json;
	return Object.fromEntries(
		form.map(({ name, data }) => {
			const text = data.toString("utf8");
			return [name, /^[{[]/.test(text) ? JSON.parse(text) : text];
		}),
	);
}

async function handle(world: World, request: FakeRequest): Promise<FakeReply> {
	const file = /^\/file\/bot([^/]+)\/(.+)$/.exec(request.path);
	if (file) {
		const data = file[1] === TELEGRAM_TOKEN ? world.files.get(file[2] ?? "") : undefined;
		return data ? { status: 200, body: data } : refusal(404, "Not Found");
	}
	const method = methodOf(request);
	if (!method) return refusal(404, "Not Found");
	if (!request.path.startsWith(`/bot${TELEGRAM_TOKEN}/`)) return refusal(401, "Unauthorized");
	try {
		return ok(await call(world, method, fieldsOf(request), request));
	} catch (cause) {
		if (cause instanceof Refusal) return refusal(cause.code, cause.message, cause.parameters);
		throw cause;
	}
}

async function call(
	world: World,
	method: string,
	fields: Record<string, unknown>,
	request: FakeRequest,
): Promise<unknown> {
	switch (method) {
		case "getMe":
			return BOT;
		case "getWebhookInfo":
			return { url: world.webhook.url, has_custom_certificate: false, pending_update_count: world.updates.length };
		case "setWebhook":
			world.webhook = { url: textOf(fields.url), secret: textOf(fields.secret_token) };
			return true;
		case "deleteWebhook":
			world.webhook = { url: "", secret: "" };
			return true;
		case "getUpdates":
			return await getUpdates(world, fields, request.gone);
		case "getFile":
			if (!world.files.has(textOf(fields.file_id)))
				throw new Refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable");
			return { file_id: fields.file_id, file_unique_id: "u", file_path: fields.file_id };
		case "sendChatAction":
			limit(world, chatOf(world, fields), request.at);
			if (fields.action !== "typing") throw new Refusal(400, "Bad Request: wrong parameter action in request");
			return true;
		case "answerCallbackQuery": {
			if (textOf(fields.text).length > 200) throw new Refusal(400, "Bad Request: MESSAGE_TOO_LONG");
			const text = fields.text === undefined ? undefined : textOf(fields.text);
			if (world.presses.answer(textOf(fields.callback_query_id), text)) return true;
			throw new Refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid");
		}
		case "sendMessage":
			return sendMessage(world, fields, request.at);
		case "editMessageText":
			return editMessage(world, fields, request.at);
		case "deleteMessage":
			return deleteMessage(world, fields);
		case "sendMessageDraft":
			return sendDraft(world, fields);
		case "sendPhoto":
		case "sendAnimation":
		case "sendVoice":
		case "sendAudio":
		case "sendVideo":
		case "sendDocument":
			return sendFile(world, method, fields, request);
		default:
			throw new Refusal(404, "Not Found: method not found");
	}
}

async function getUpdates(world: World, fields: Record<string, unknown>, gone: AbortSignal): Promise<unknown[]> {
	if (world.webhook.url !== "") {
		throw new Refusal(
			409,
			"Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
		);
	}
	// The offset confirms everything before it.
	world.updates = world.updates.filter(({ update_id }) => update_id >= Number(fields.offset ?? 0));
	const { clock } = world.options;
	const until = clock.now() + Number(fields.timeout ?? 0) * 1000;
	while (world.updates.length === 0 && clock.now() < until && !gone.aborted) {
		await new Promise<void>((resolve) => {
			const cancel = clock.after(until - clock.now(), resolve);
			world.waiting.push(() => {
				cancel();
				resolve();
			});
			gone.addEventListener("abort", () => resolve(), { once: true });
		});
	}
	return world.updates.slice(0, 100);
}

function chatOf(world: World, fields: Record<string, unknown>): string {
	const chat = textOf(fields.chat_id);
	if (!/^(-?\d+|@\w+)$/.test(chat)) throw new Refusal(400, "Bad Request: chat not found");
	if (chat === "404") throw new Refusal(400, "Bad Request: chat not found");
	if (chat === "403") throw new Refusal(403, "Forbidden: bot was blocked by the user");
	const moved = world.migrated.get(chat);
	if (moved !== undefined) {
		throw new Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", {
			migrate_to_chat_id: Number(moved),
		});
	}
	return chat;
}

function limit(world: World, chat: string, now: number): void {
	const { privateRate, groupRate, accountRate } = world.options;
	for (const [key, [burst, refillMs]] of [
		["account", accountRate],
		[chat, isPrivate(chat) ? privateRate : groupRate],
	] as const) {
		const bucket = world.buckets.get(key) ?? createBucket(burst, refillMs);
		world.buckets.set(key, bucket);
		const waitMs = bucket.take(now);
		if (waitMs === 0) continue;
		const seconds = Math.max(1, Math.ceil(waitMs / 1000));
		throw new Refusal(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds });
	}
}

/** The text as people see it; the same rules hold for messages, edits and drafts. */
function readText(fields: Record<string, unknown>): { text: string; entities: Entity[] } {
	const given = textOf(fields.text);
	const parsed = fields.parse_mode === "HTML" ? parseTelegramHtml(given) : { text: given, entities: [] };
	if ("error" in parsed) throw new Refusal(400, `Bad Request: can't parse entities: ${parsed.error}`);
	if (parsed.text.length > 4096) throw new Refusal(400, "Bad Request: message is too long");
	const size = parsed.entities.reduce((sum, { url = "", language = "" }) => sum + 16 + `${url}${language}`.length, 0);
	if (size > 9500) throw new Refusal(400, "Bad Request: ENTITIES_TOO_LONG");
	// Further ones are ignored.
	const entities = parsed.entities.toSorted((a, b) => a.offset - b.offset || b.length - a.length).slice(0, 100);
	return { text: parsed.text.trim(), entities };
}

function put(world: World, chat: string, fields: Record<string, unknown>, rest: Partial<TelegramMessage>): unknown {
	const reply = (fields.reply_parameters as { message_id?: number } | undefined)?.message_id;
	const message: TelegramMessage = {
		message_id: world.ids.message++,
		chat,
		text: "",
		entities: [],
		...(fields.message_thread_id === undefined ? {} : { thread: Number(fields.message_thread_id) }),
		...(reply === undefined ? {} : { replyTo: reply }),
		buttons: keyboardOf(fields),
		edits: 0,
		...rest,
	};
	world.messages.set(chat, [...(world.messages.get(chat) ?? []), message]);
	// A message takes the draft's place.
	world.drafts.delete(chat);
	return {
		message_id: message.message_id,
		date: Math.floor(world.options.clock.now() / 1000),
		chat: { id: chat },
		text: message.text,
	};
}

function sendMessage(world: World, fields: Record<string, unknown>, at: number): unknown {
	const chat = chatOf(world, fields);
	const said = readText(fields);
	if (said.text === "") throw new Refusal(400, "Bad Request: message text is empty");
	if (fields.message_thread_id === 404) throw new Refusal(400, "Bad Request: message thread not found");
	limit(world, chat, at);
	return put(world, chat, fields, said);
}

function keyboardOf({ reply_markup }: Record<string, unknown>): Keyboard[] {
	const read = readKeyboard(reply_markup);
	if ("error" in read) throw new Refusal(400, `Bad Request: ${read.error}`);
	return read;
}

function editMessage(world: World, fields: Record<string, unknown>, at: number): unknown {
	const chat = chatOf(world, fields);
	const message = world.messages.get(chat)?.find((each) => each.message_id === Number(fields.message_id));
	if (!message) throw new Refusal(400, "Bad Request: message to edit not found");
	const said = readText(fields);
	if (said.text === "") throw new Refusal(400, "Bad Request: message text is empty");
	limit(world, chat, at);
	const buttons = keyboardOf(fields);
	const { text, entities } = message;
	if (JSON.stringify({ ...said, buttons }) === JSON.stringify({ text, entities, buttons: message.buttons })) {
		throw new Refusal(
			400,
			"Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
		);
	}
	// A field that is not named is removed.
	Object.assign(message, said, { buttons, edits: message.edits + 1 });
	return { message_id: message.message_id };
}

function deleteMessage(world: World, fields: Record<string, unknown>): unknown {
	const chat = chatOf(world, fields);
	const messages = world.messages.get(chat) ?? [];
	const rest = messages.filter((each) => each.message_id !== Number(fields.message_id));
	if (rest.length === messages.length) throw new Refusal(400, "Bad Request: message to delete not found");
	world.messages.set(chat, rest);
	return true;
}

function sendDraft(world: World, fields: Record<string, unknown>): unknown {
	const chat = chatOf(world, fields);
	if (!isPrivate(chat)) throw new Refusal(400, "Bad Request: TEXTDRAFT_PEER_INVALID");
	if (!Number.isInteger(fields.draft_id) || fields.draft_id === 0)
		throw new Refusal(400, "Bad Request: RANDOM_ID_INVALID");
	const { text } = readText(fields);
	world.drafts.set(chat, { id: Number(fields.draft_id), text, until: world.options.clock.now() + 30_000 });
	return true;
}

function sendFile(world: World, method: string, fields: Record<string, unknown>, request: FakeRequest): unknown {
	const chat = chatOf(world, fields);
	const kind = method.slice(4).toLowerCase();
	const part = readForm(request).find(({ filename }) => filename !== undefined);
	if (!part || fields[kind] !== `attach://${part.name}`)
		throw new Refusal(400, `Bad Request: there is no ${kind} in the request`);
	if (kind === "photo" && part.data.length > 10_000_000) throw new Refusal(413, "Request Entity Too Large");
	if (kind === "photo" && part.data.toString("latin1", 0, 6) === "broken") {
		throw new Refusal(400, "Bad Request: IMAGE_PROCESS_FAILED");
	}
	limit(world, chat, request.at);
	return put(world, chat, fields, { file: { name: part.filename ?? "", kind, data: part.data } });
}

async function inject(
	world: World,
	{ text, from = "42", to, ...extra }: { text: string; from?: string; to?: string; [extra: string]: unknown },
): Promise<void> {
	const chat = to ?? from;
	const { file, fileBytes, fileName, ...fields } = extra as { file?: Buffer; fileBytes?: number; fileName?: string };
	const id = `file${world.files.size + 1}`;
	if (file) world.files.set(id, file);
	const name = fileName ?? "note.txt";
	const document = file && {
		file_id: id,
		file_unique_id: id,
		file_name: name,
		mime_type: "text/plain",
		file_size: fileBytes ?? file.length,
	};
	const update = {
		update_id: world.ids.update++,
		message: {
			message_id: world.ids.message++,
			date: Math.floor(world.options.clock.now() / 1000),
			chat: isPrivate(chat)
				? { id: Number(chat), type: "private", first_name: "Ann" }
				: { id: Number(chat), type: "supergroup", title: "Group" },
			from: { id: Number(from), is_bot: false, first_name: "Ann" },
			...(document ? { document, caption: text } : { text }),
			...fields,
		},
	};
	await tell(world, update);
}

async function press(
	world: World,
	message: TelegramMessage | undefined,
	label: string,
	from = "42",
): Promise<string | undefined> {
	const button = message?.buttons.find(({ text }) => text === label);
	if (!message || !button) throw new Error(`there is no button "${label}"`);
	const { id, answered } = world.presses.begin();
	await tell(world, {
		update_id: world.ids.update++,
		callback_query: {
			id,
			chat_instance: "1",
			data: button.callback_data,
			from: { id: Number(from), is_bot: false, first_name: "Ann" },
			message: {
				message_id: message.message_id,
				date: 1,
				chat: { id: Number(message.chat), type: typeOf(message.chat) },
			},
		},
	});
	return answered;
}

const typeOf = (chat: string): string => (isPrivate(chat) ? "private" : "supergroup");

async function tell(world: World, update: World["updates"][number]): Promise<void> {
	if (world.webhook.url === "") {
		world.updates.push(update);
		for (const wake of world.waiting.splice(0)) wake();
		return;
	}
	const headers = { "content-type": "application/json", "x-telegram-bot-api-secret-token": world.webhook.secret };
	const response = await fetch(world.webhook.url, { method: "POST", headers, body: JSON.stringify(update) });
	if (!response.ok) world.webhook.lastError = `Wrong response from the webhook: ${response.status}`;
}
