/** Messages of the fake Bot API, with their limits on length, speed and buttons; and the state that all of it shares. */

import type { FakeOptions } from "../fake.ts";
import {
	type Buckets,
	type Chats,
	type FakeHttp,
	FakeRefusal,
	type FakeRequest,
	type Rate,
	readForm,
} from "../http.ts";
import { type Entity, parseTelegramHtml } from "./html.ts";

export interface TelegramFakeOptions extends FakeOptions {
	/** Calls that a chat takes at once, and how fast more are allowed. Documented: about one a second, in groups 20 a minute, 30 a second in all. */
	privateRate?: Rate;
	groupRate?: Rate;
	accountRate?: Rate;
}

interface Keyboard {
	text: string;
	callback_data: string;
}

const BUTTON_DATA_BYTES_MAX = 64;
const BUTTONS_MAX = 100;

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

/** Presses that wait for their answer. */
export interface Presses {
	begin(): { id: string; answered: Promise<string | undefined> };
	/** False: there was no such press, or it is answered. */
	answer(id: string, text: string | undefined): boolean;
}

export interface TelegramWorld {
	http: FakeHttp;
	chats: Chats<TelegramMessage>;
	drafts: Map<string, { id: number; text: string; until: number }>;
	updates: ({ update_id: number } & ({ message: object } | { callback_query: object }))[];
	presses: Presses;
	waiting: (() => void)[];
	files: Map<string, Buffer>;
	migrated: Map<string, string>;
	webhook: { url: string; secret: string; lastError?: string };
	ids: { message: number; update: number };
	buckets: Buckets;
	options: Required<TelegramFakeOptions>;
}

export class TelegramRefusal extends FakeRefusal {
	constructor(code: number, description: string, parameters?: object) {
		super(description, { status: code, body: { ok: false, error_code: code, description, parameters } });
	}
}

export function tooMany(waitMs: number): TelegramRefusal {
	const seconds = Math.max(1, Math.ceil(waitMs / 1000));
	return new TelegramRefusal(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds });
}

export const textOf = (value: unknown): string =>
	typeof value === "string" || typeof value === "number" ? `${value}` : "";

export const isPrivate = (chat: string): boolean => /^\d+$/.test(chat);

export function chatOf(world: TelegramWorld, fields: Record<string, unknown>): string {
	const chat = textOf(fields.chat_id);
	if (!/^(-?\d+|@\w+)$/.test(chat)) throw new TelegramRefusal(400, "Bad Request: chat not found");
	if (chat === "404") throw new TelegramRefusal(400, "Bad Request: chat not found");
	if (chat === "403") throw new TelegramRefusal(403, "Forbidden: bot was blocked by the user");
	const moved = world.migrated.get(chat);
	if (moved !== undefined) {
		throw new TelegramRefusal(400, "Bad Request: group chat was upgraded to a supergroup chat", {
			migrate_to_chat_id: Number(moved),
		});
	}
	return chat;
}

export function limit(world: TelegramWorld, chat: string, now: number): void {
	const { privateRate, groupRate, accountRate } = world.options;
	for (const [key, rate] of [
		["account", accountRate],
		[chat, isPrivate(chat) ? privateRate : groupRate],
	] as const) {
		const waitMs = world.buckets.take(key, rate, now);
		if (waitMs > 0) throw tooMany(waitMs);
	}
}

/** The text as people see it; the same rules hold for messages, edits and drafts. */
function readText(fields: Record<string, unknown>): { text: string; entities: Entity[] } {
	const given = textOf(fields.text);
	const parsed = fields.parse_mode === "HTML" ? parseTelegramHtml(given) : { text: given, entities: [] };
	if ("error" in parsed) throw new TelegramRefusal(400, `Bad Request: can't parse entities: ${parsed.error}`);
	if (parsed.text.length > 4096) throw new TelegramRefusal(400, "Bad Request: message is too long");
	const size = parsed.entities.reduce((sum, { url = "", language = "" }) => sum + 16 + `${url}${language}`.length, 0);
	if (size > 9500) throw new TelegramRefusal(400, "Bad Request: ENTITIES_TOO_LONG");
	// Further ones are ignored.
	const entities = parsed.entities.toSorted((a, b) => a.offset - b.offset || b.length - a.length).slice(0, 100);
	return { text: parsed.text.trim(), entities };
}

function put(
	world: TelegramWorld,
	chat: string,
	fields: Record<string, unknown>,
	rest: Partial<TelegramMessage>,
): unknown {
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
	world.chats.add(chat, message);
	// A message takes the draft's place.
	world.drafts.delete(chat);
	return {
		message_id: message.message_id,
		date: Math.floor(world.options.clock.now() / 1000),
		chat: { id: chat },
		text: message.text,
	};
}

export function sendMessage(world: TelegramWorld, fields: Record<string, unknown>, at: number): unknown {
	const chat = chatOf(world, fields);
	const said = readText(fields);
	if (said.text === "") throw new TelegramRefusal(400, "Bad Request: message text is empty");
	if (fields.message_thread_id === 404) throw new TelegramRefusal(400, "Bad Request: message thread not found");
	limit(world, chat, at);
	return put(world, chat, fields, said);
}

function keyboardOf({ reply_markup }: Record<string, unknown>): Keyboard[] {
	const buttons = ((reply_markup as { inline_keyboard?: Keyboard[][] } | undefined)?.inline_keyboard ?? []).flat();
	const refuse = (reason: string) => new TelegramRefusal(400, `Bad Request: ${reason}`);
	if (buttons.length > BUTTONS_MAX) throw refuse("REPLY_MARKUP_TOO_LONG");
	for (const { text, callback_data: data = "" } of buttons) {
		if (typeof text !== "string" || text.trim() === "")
			throw refuse("can't parse inline keyboard button: Text buttons must have text");
		const bytes = Buffer.byteLength(data, "utf8");
		if (bytes === 0 || bytes > BUTTON_DATA_BYTES_MAX) throw refuse("BUTTON_DATA_INVALID");
	}
	return buttons;
}

export function editMessage(world: TelegramWorld, fields: Record<string, unknown>, at: number): unknown {
	const chat = chatOf(world, fields);
	const message = world.chats.of(chat).find((each) => each.message_id === Number(fields.message_id));
	if (!message) throw new TelegramRefusal(400, "Bad Request: message to edit not found");
	const said = readText(fields);
	if (said.text === "") throw new TelegramRefusal(400, "Bad Request: message text is empty");
	limit(world, chat, at);
	const buttons = keyboardOf(fields);
	const { text, entities } = message;
	if (JSON.stringify({ ...said, buttons }) === JSON.stringify({ text, entities, buttons: message.buttons })) {
		throw new TelegramRefusal(
			400,
			"Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
		);
	}
	// A field that is not named is removed.
	Object.assign(message, said, { buttons, edits: message.edits + 1 });
	return { message_id: message.message_id };
}

export function deleteMessage(world: TelegramWorld, fields: Record<string, unknown>): unknown {
	const chat = chatOf(world, fields);
	if (world.chats.remove(chat, (each) => each.message_id === Number(fields.message_id))) return true;
	throw new TelegramRefusal(400, "Bad Request: message to delete not found");
}

export function sendDraft(world: TelegramWorld, fields: Record<string, unknown>): unknown {
	const chat = chatOf(world, fields);
	if (!isPrivate(chat)) throw new TelegramRefusal(400, "Bad Request: TEXTDRAFT_PEER_INVALID");
	if (!Number.isInteger(fields.draft_id) || fields.draft_id === 0)
		throw new TelegramRefusal(400, "Bad Request: RANDOM_ID_INVALID");
	const { text } = readText(fields);
	world.drafts.set(chat, { id: Number(fields.draft_id), text, until: world.options.clock.now() + 30_000 });
	return true;
}

export function sendFile(
	world: TelegramWorld,
	method: string,
	fields: Record<string, unknown>,
	request: FakeRequest,
): unknown {
	const chat = chatOf(world, fields);
	const kind = method.slice(4).toLowerCase();
	const part = readForm(request).find(({ filename }) => filename !== undefined);
	if (!part || fields[kind] !== `attach://${part.name}`)
		throw new TelegramRefusal(400, `Bad Request: there is no ${kind} in the request`);
	if (kind === "photo" && part.data.length > 10_000_000) throw new TelegramRefusal(413, "Request Entity Too Large");
	if (kind === "photo" && part.data.toString("latin1", 0, 6) === "broken") {
		throw new TelegramRefusal(400, "Bad Request: IMAGE_PROCESS_FAILED");
	}
	limit(world, chat, request.at);
	return put(world, chat, fields, { file: { name: part.filename ?? "", kind, data: part.data } });
}
