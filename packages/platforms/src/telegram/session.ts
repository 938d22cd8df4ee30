/** A signed-in Telegram bot: the Bot API's calls, each refusal in the words of all platforms. */

import {
	type CreatedMessage,
	type InboundMessage,
	PlatformError,
	type Press,
	remembered,
	type SendOptions,
	type Session,
	type Settings,
	type Target,
	type Tools,
	type WebhookAnswer,
	type WebhookRequest,
	type WireAttachment,
} from "@nexus-stream/adapter";
import { createdId } from "@nexus-stream/adapter/platform/json";
import { addressOf, download, withFiles } from "@nexus-stream/adapter/platform/network";
import { cannotTell } from "@nexus-stream/adapter/platform/platform-error";
import type {
	Asking,
	Attaching,
	Editing,
	Emit,
	Listening,
	OnPress,
	Previewing,
	Webhooks,
} from "@nexus-stream/adapter/platform/session";
import { readPost, secretFault } from "@nexus-stream/adapter/platform/webhook";
import { unlessAborted } from "@nexus-stream/adapter/serve/listen";
import { InputFile, type RawApi } from "grammy";
import type { Update } from "grammy/types";
import { createApi } from "./api.ts";
import { keyboardOf, readPress } from "./buttons.ts";
import { isMarkupFault, isNotModified, migratedTo, toPlatformError } from "./faults.ts";
import { withoutMarkup } from "./format.ts";
import { readUpdate, type TelegramFile } from "./inbound.ts";
import { exhaust, isRested, isScarce, PREVIEW_INTERVAL_MS, paceOf, spend, type TelegramAllowance } from "./pace.ts";
import { poll, UPDATES } from "./poll.ts";

const CHATS_KEPT = 1000;

type Signal = Parameters<RawApi["getMe"]>[0];

type TelegramSettings = Settings<"token" | "webhook_url" | "webhook_secret" | "drafts" | "api_url">;

export class TelegramSession implements Session, Editing, Previewing, Asking, Attaching, Listening, Webhooks {
	readonly editing = this;
	readonly previewing = this;
	readonly asking = this;
	readonly attaching = this;
	readonly listening = this;
	readonly webhooks = this;
	readonly #settings: TelegramSettings;
	readonly #apiUrl: string;
	readonly #api: RawApi;
	readonly #tools: Tools;
	readonly #allowances = new Map<string, TelegramAllowance>();
	readonly #me = remembered(() => this.#call("getMe", () => this.#api.getMe()));

	constructor(settings: TelegramSettings, tools: Tools) {
		this.#settings = settings;
		this.#apiUrl = addressOf("api_url", settings.api_url);
		this.#api = createApi(settings.token, this.#apiUrl);
		this.#tools = tools;
		if (settings.webhook_url !== "" && settings.webhook_secret === "") {
			throw new PlatformError("invalid", "webhook_url needs webhook_secret: choose one of letters, digits, _ and -.");
		}
	}

	style(target: Target): "preview" | "edit" {
		return this.#settings.drafts === "true" && isDirect(target) ? "preview" : "edit";
	}

	pace(target: Target) {
		const pace = paceOf(this.#allowances.get(target.to), isDirect(target), this.#tools.clock.now());
		return this.style(target) === "preview" ? { ...pace, targetIntervalMs: PREVIEW_INTERVAL_MS } : pace;
	}

	async create(target: Target, text: string, { question, signal }: SendOptions): Promise<CreatedMessage> {
		const more = { ...replyTo(target), ...NO_LINK_PREVIEW, ...(question && keyboardOf(question)) };
		const sent = await this.#write("sendMessage", target, (address) =>
			inMarkup(text, (content) => this.#api.sendMessage({ ...address, ...more, ...content }, signal as Signal)),
		);
		return { messageId: createdId("sendMessage", sent.message_id) };
	}

	/** Bots cannot read a chat's history: only the kit's record can answer. */
	async find(): Promise<never> {
		throw cannotTell("The message may or may not have been sent, and bots cannot read a chat. Look at the chat.");
	}

	async edit(target: Target, messageId: string, text: string, { signal }: SendOptions): Promise<void> {
		await this.#write("editMessageText", target, async ({ chat_id }) => {
			const message_id = Number(messageId);
			try {
				await inMarkup(text, (content) =>
					this.#api.editMessageText({ chat_id, message_id, ...content, ...NO_LINK_PREVIEW }, signal as Signal),
				);
			} catch (cause) {
				if (!isNotModified(cause)) throw cause;
			}
		});
	}

	/** An edit that names no keyboard takes it away. */
	async settle(target: Target, messageId: string, text: string, options: SendOptions): Promise<void> {
		await this.edit(target, messageId, text, options);
	}

	async remove(target: Target, messageId: string, { signal }: SendOptions): Promise<void> {
		await this.#write("deleteMessage", target, ({ chat_id }) =>
			this.#api.deleteMessage({ chat_id, message_id: Number(messageId) }, signal as Signal),
		);
	}

	async preview(target: Target, draftId: number, text: string, { signal }: SendOptions): Promise<void> {
		const { chat_id, ...thread } = this.#addressOf(target);
		await this.#call("sendMessageDraft", () =>
			inMarkup(text, (content) =>
				this.#api.sendMessageDraft(
					{ chat_id: Number(chat_id), ...thread, draft_id: draftId, ...content },
					signal as Signal,
				),
			),
		);
	}

	/** It ends by itself after five seconds, or with the next message. */
	async typing(target: Target, on: boolean): Promise<void> {
		const now = this.#tools.clock.now();
		const allowance = this.#allowances.get(target.to);
		if (!on || isScarce(allowance, isDirect(target), now)) return;
		this.#keep(target.to, spend(allowance, isDirect(target), now));
		await this.#call("sendChatAction", () =>
			this.#api.sendChatAction({ ...this.#addressOf(target), action: "typing" }),
		);
	}

	async attach(target: Target, attachment: WireAttachment, { signal }: SendOptions): Promise<CreatedMessage> {
		const name = attachment.name.replace(/[\r\n"]/g, "_");
		const upload = ([method, field]: Upload) => {
			const call = this.#api[method] as (args: object, signal: Signal) => Promise<{ message_id: number }>;
			return this.#write(method, target, (address) => {
				const file = new InputFile(Buffer.from(attachment.data, "base64"), name);
				return call({ ...address, ...replyTo(target), [field]: file }, signal as Signal);
			});
		};
		const kind = uploadOf(attachment.contentType);
		const sent = await upload(kind).catch((cause: PlatformError) => {
			// Not a picture or recording that Telegram can show; as a document it takes everything.
			if (cause.fault !== "invalid" || kind === DOCUMENT) throw cause;
			return upload(DOCUMENT);
		});
		return { messageId: createdId("attach", sent.message_id) };
	}

	async monitor(emit: Emit, signal: AbortSignal, press: OnPress): Promise<void> {
		const { webhook_url: url, webhook_secret: secret_token } = this.#settings;
		if (url !== "") {
			await this.#call("setWebhook", () => this.#api.setWebhook({ url, secret_token, allowed_updates: UPDATES }));
			this.#tools.listening();
			return await unlessAborted(signal, new Promise<never>(() => {}));
		}
		await poll({
			api: this.#api,
			call: (method, work) => this.#call(method, work),
			take: async (update) => {
				const pressed = await this.#readPress(update);
				if (pressed) return { safe: press(pressed) };
				const message = await this.#read(update);
				return { safe: message && emit(message) };
			},
			signal,
			...this.#tools,
		});
	}

	async webhook(request: WebhookRequest): Promise<WebhookAnswer> {
		const opened = readPost<Update>(request, ({ headers }) =>
			secretFault(headers["x-telegram-bot-api-secret-token"], this.#settings.webhook_secret, "secret token"),
		);
		if (!("payload" in opened)) return opened;
		const pressed = await this.#readPress(opened.payload);
		const message = pressed ? undefined : await this.#read(opened.payload);
		return { status: 200, messages: message ? [message] : [], presses: pressed && [pressed] };
	}

	async health() {
		const me = await this.#me();
		const info = await this.#call("getWebhookInfo", () => this.#api.getWebhookInfo());
		const { webhook_url: url } = this.#settings;
		const problem = url !== "" && info.last_error_message ? `; webhook: ${info.last_error_message}` : "";
		const way = url === "" ? "polling" : `webhook ${url}`;
		return { ok: problem === "", detail: `@${me.username}, ${way}${problem}` };
	}

	async #readPress({ callback_query: query }: Update): Promise<Press | undefined> {
		if (!query) return undefined;
		const { choice, answer } = readPress(query, this.#api);
		if (choice) return { choice, answer };
		await answer(undefined).catch((cause: unknown) => {
			this.#tools.log.debug({ error: String(cause) }, "a button that is not ours could not be answered");
		});
		return undefined;
	}

	async #read(update: Update): Promise<InboundMessage | undefined> {
		const inbound = readUpdate(update, await this.#me());
		if (!inbound) return undefined;
		return await withFiles(inbound.message, inbound.files, (file, bytesMax) => this.#fetchFile(file, bytesMax));
	}

	async #fetchFile(file: TelegramFile, bytesMax: number): Promise<Buffer> {
		const { file_path: path } = await this.#call("getFile", () => this.#api.getFile({ file_id: file.fileId }));
		if (path === undefined) throw new PlatformError("gone", "getFile: Telegram has no path for it");
		return await download(`${this.#apiUrl}/file/bot${this.#settings.token}/${path}`, { bytesMax, home: this.#apiUrl });
	}

	async #call<T>(method: string, work: () => Promise<T>): Promise<T> {
		try {
			return await work();
		} catch (cause) {
			throw toPlatformError(method, cause);
		}
	}

	/** A call that counts against the chat's allowance, repeated in the chat's new place when it has moved. */
	async #write<T>(method: string, target: Target, work: (address: TelegramAddress) => Promise<T>): Promise<T> {
		const { clock, state } = this.#tools;
		this.#keep(target.to, spend(this.#allowances.get(target.to), isDirect(target), clock.now()));
		return await this.#call(method, async () => {
			try {
				return await work(this.#addressOf(target));
			} catch (cause) {
				const moved = migratedTo(cause);
				if (moved === undefined) throw cause;
				state.set(movedKey(target.to), String(moved));
				return await work(this.#addressOf(target));
			}
		}).catch((cause: PlatformError) => {
			if (cause.fault === "rate_limited") this.#keep(target.to, exhaust(clock.now()));
			throw cause;
		});
	}

	#keep(chat: string, allowance: TelegramAllowance): void {
		this.#allowances.set(chat, allowance);
		if (this.#allowances.size <= CHATS_KEPT) return;
		const now = this.#tools.clock.now();
		for (const [each, known] of this.#allowances) if (isRested(known, now)) this.#allowances.delete(each);
	}

	#addressOf(target: Target): TelegramAddress {
		const to = this.#tools.state.get(movedKey(target.to)) ?? target.to;
		const chat_id = /^-?\d+$/.test(to) ? Number(to) : to;
		return target.thread_id === undefined ? { chat_id } : { chat_id, message_thread_id: Number(target.thread_id) };
	}
}

interface TelegramAddress {
	chat_id: number | string;
	message_thread_id?: number;
}

const movedKey = (chat: string): string => `moved:${chat}`;

/** Persons have positive ids. */
export const isDirect = (target: Target): boolean => target.direct ?? /^\d+$/.test(target.to);

/** A preview that comes and goes while a text grows disturbs its reading. */
const NO_LINK_PREVIEW = { link_preview_options: { is_disabled: true } } as const;

const replyTo = ({ reply_to }: Target) =>
	reply_to === undefined
		? {}
		: { reply_parameters: { message_id: Number(reply_to), allow_sending_without_reply: true } };

/** A text whose markup Telegram cannot read is said without it: refused texts were not sent. */
async function inMarkup<T>(
	text: string,
	send: (content: { text: string; parse_mode?: "HTML" }) => Promise<T>,
): Promise<T> {
	try {
		return await send({ text, parse_mode: "HTML" });
	} catch (cause) {
		if (!isMarkupFault(cause)) throw cause;
		return await send({ text: withoutMarkup(text) });
	}
}

type Upload = readonly [
	method: "sendPhoto" | "sendAnimation" | "sendVoice" | "sendAudio" | "sendVideo" | "sendDocument",
	field: string,
];

const DOCUMENT: Upload = ["sendDocument", "document"];

/** Telegram shows some kinds of files in their own way; the others are documents. */
function uploadOf(contentType: string): Upload {
	if (/^image\/(?:jpeg|png|webp)$/.test(contentType)) return ["sendPhoto", "photo"];
	if (contentType === "image/gif") return ["sendAnimation", "animation"];
	if (contentType === "audio/ogg") return ["sendVoice", "voice"];
	if (/^audio\/(?:mpeg|mp4)$/.test(contentType)) return ["sendAudio", "audio"];
	return contentType === "video/mp4" ? ["sendVideo", "video"] : DOCUMENT;
}
