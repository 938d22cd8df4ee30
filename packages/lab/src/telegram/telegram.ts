/** A Bot API server: polling and webhooks, HTML entities, the limits on length and speed, files, drafts. */

import { systemClock } from "@nexus-stream/protocol/clock";
import type { Fake } from "../fake.ts";
import { Buckets, Chats, type FakeHttp, type FakeReply, type FakeRequest, ok, readForm, serveFake } from "../http.ts";
import {
	chatOf,
	deleteMessage,
	editMessage,
	limit,
	sendDraft,
	sendFile,
	sendMessage,
	type TelegramFakeOptions,
	type TelegramMessage,
	TelegramRefusal,
	type TelegramWorld,
	textOf,
	tooMany,
} from "./messages.ts";
import { createPresses, getUpdates, inject, press } from "./updates.ts";

export const TELEGRAM_TOKEN = "123456:TEST-token_for_the_fake";
const BOT = { id: 123456, is_bot: true, first_name: "Nexus", username: "nexus_bot" };

export interface TelegramFake extends Fake {
	buttons: NonNullable<Fake["buttons"]>;
	press: NonNullable<Fake["press"]>;
	readonly token: string;
	raw(to: string): TelegramMessage[];
	draft(to: string): string | undefined;
	pending(): number;
	/** Makes a group a supergroup with a new id. */
	migrate(from: string, to: string): void;
	remove(to: string, messageId: number): void;
}

export async function createTelegramFake(options: TelegramFakeOptions = {}): Promise<TelegramFake> {
	const world: TelegramWorld = {
		http: undefined as unknown as FakeHttp,
		chats: new Chats(),
		drafts: new Map(),
		updates: [],
		presses: createPresses(),
		waiting: [],
		files: new Map(),
		migrated: new Map(),
		webhook: { url: "", secret: "" },
		ids: { message: 100, update: 5000 },
		buckets: new Buckets(),
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
			if (kind !== "429") return new TelegramRefusal(500, "Internal Server Error").reply;
			return tooMany(ms).reply;
		},
	});
	const of = (to: string) => world.chats.of(to);
	return {
		...world.http,
		settings: { token: TELEGRAM_TOKEN, api_url: world.http.url },
		token: TELEGRAM_TOKEN,
		close() {
			for (const wake of world.waiting.splice(0)) wake();
			return world.http.close();
		},
		raw: (to) => [...of(to)],
		visible: (to) => of(to).map(({ text }) => text),
		draft: (to) => {
			const draft = world.drafts.get(to);
			return draft && draft.until > clock.now() ? draft.text : undefined;
		},
		pending: () => world.updates.length,
		migrate: (from, to) => void world.migrated.set(from, to),
		remove: (to, messageId) => void world.chats.remove(to, (each) => each.message_id === messageId),
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

async function handle(world: TelegramWorld, request: FakeRequest): Promise<FakeReply> {
	const file = /^\/file\/bot([^/]+)\/(.+)$/.exec(request.path);
	if (file) {
		const data = file[1] === TELEGRAM_TOKEN ? world.files.get(file[2] ?? "") : undefined;
		if (!data) throw new TelegramRefusal(404, "Not Found");
		return { status: 200, body: data };
	}
	const method = methodOf(request);
	if (!method) throw new TelegramRefusal(404, "Not Found");
	if (!request.path.startsWith(`/bot${TELEGRAM_TOKEN}/`)) throw new TelegramRefusal(401, "Unauthorized");
	return ok({ ok: true, result: await call(world, method, fieldsOf(request), request) });
}

async function call(
	world: TelegramWorld,
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
				throw new TelegramRefusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable");
			return { file_id: fields.file_id, file_unique_id: "u", file_path: fields.file_id };
		case "sendChatAction":
			limit(world, chatOf(world, fields), request.at);
			if (fields.action !== "typing") throw new TelegramRefusal(400, "Bad Request: wrong parameter action in request");
			return true;
		case "answerCallbackQuery": {
			if (textOf(fields.text).length > 200) throw new TelegramRefusal(400, "Bad Request: MESSAGE_TOO_LONG");
			const text = fields.text === undefined ? undefined : textOf(fields.text);
			if (world.presses.answer(textOf(fields.callback_query_id), text)) return true;
			throw new TelegramRefusal(
				400,
				"Bad Request: query is too old and response timeout expired or query ID is invalid",
			);
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
			throw new TelegramRefusal(404, "Not Found: method not found");
	}
}
