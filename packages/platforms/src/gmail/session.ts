/** A Gmail account. */

import type { gmail_v1 } from "@googleapis/gmail";
import {
	type CreatedMessage,
	type InboundMessage,
	PlatformError,
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
import { withFiles } from "@nexus-stream/adapter/platform/network";
import { harmless } from "@nexus-stream/adapter/platform/platform-error";
import type { Attaching, Emit, Listening, Webhooks } from "@nexus-stream/adapter/platform/session";
import { refused, secretFault } from "@nexus-stream/adapter/platform/webhook";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import { sleep } from "@nexus-stream/protocol/retry";
import PostalMime, { type Email } from "postal-mime";
import { createApi, type GmailCall, type GmailCredentials } from "./api.ts";
import { compose, messageIdOf } from "./compose.ts";
import { NONCE_HEADER, readMail } from "./inbound.ts";
import { createSync, type SyncMailbox } from "./mailbox.ts";

const POLL_MS = 10_000;
/** With push, polling only brings what it has missed. */
const POLL_BESIDE_PUSH_MS = 60_000;
/** A watch ends after seven days. */
const WATCH_AGAIN_MS = 24 * 60 * 60_000;
/** Searching sees a mail a moment after it was sent. */
const SETTLE_MS = 3000;
const SENT_MAILS_MAX = 25;

type GmailSettings = GmailCredentials & Settings<"from_name" | "topic" | "webhook_secret">;

export class GmailSession implements Session, Attaching, Listening, Webhooks {
	readonly attaching = this;
	readonly listening = this;
	readonly webhooks = this;
	readonly #call: GmailCall;
	readonly #sync: SyncMailbox;
	readonly #settings: GmailSettings;
	readonly #tools: Tools;
	readonly #me = remembered(async () => {
		const { emailAddress } = await this.#call("getProfile", (users) => users.getProfile({ userId: "me" }));
		return emailAddress ?? "";
	});
	#emit: Emit | undefined;
	#watchedAt = Number.NEGATIVE_INFINITY;

	constructor(settings: GmailSettings, tools: Tools) {
		this.#settings = settings;
		this.#call = createApi(settings);
		this.#tools = tools;
		this.#sync = createSync(this.#call, tools);
	}

	create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		return this.createWith(target, text, [], options);
	}

	attach(target: Target, attachment: WireAttachment, options: SendOptions): Promise<CreatedMessage> {
		return this.createWith(target, attachment.name, [attachment], options);
	}

	async createWith(
		target: Target,
		text: string,
		attachments: readonly WireAttachment[],
		{ nonce, signal }: SendOptions,
	): Promise<CreatedMessage> {
		const from = { name: this.#settings.from_name, address: await harmless(this.#me()) };
		const raw = await compose({ from, target, text, nonce, attachments });
		const requestBody = { raw, threadId: target.thread_id };
		const sent = await this.#call(
			"messages.send",
			(users, options) => users.messages.send({ userId: "me", requestBody }, options),
			signal,
		);
		return { messageId: createdId("messages.send", sent.id) };
	}

	async find(target: Target, nonce: string): Promise<CreatedMessage | undefined> {
		const first = await this.#look(target, nonce);
		if (!first) await sleep(this.#tools.clock, SETTLE_MS);
		return first ?? (await this.#look(target, nonce));
	}

	async monitor(emit: Emit, signal: AbortSignal): Promise<void> {
		this.#emit = emit;
		const pauseMs = this.#settings.topic === "" ? POLL_MS : POLL_BESIDE_PUSH_MS;
		await keepListening({ round: () => this.#round(), pauseMs, signal, ...this.#tools });
	}

	/** A push says only that there is something; what it is comes with a poll, and the push is confirmed after it. */
	async webhook({ method, query }: WebhookRequest): Promise<WebhookAnswer> {
		if (method !== "POST") return refused(405);
		const wrong = secretFault(query.get("secret"), this.#settings.webhook_secret, "secret");
		if (wrong !== undefined) return refused(401, wrong);
		if (!this.#emit) return refused(503, "not listening yet");
		await this.#round();
		return { status: 204, messages: [] };
	}

	async health() {
		const address = await this.#me();
		const { topic } = this.#settings;
		return { ok: true, detail: `${address}, ${topic === "" ? "polling" : `push by ${topic}`}` };
	}

	async #round(): Promise<void> {
		await this.#watch();
		const me = await this.#me();
		await this.#sync(async (stored) => {
			const message = await this.#read(stored, me);
			if (message) await this.#emit?.(message);
		});
	}

	async #watch(): Promise<void> {
		const now = this.#tools.clock.now();
		const { topic: topicName } = this.#settings;
		if (topicName === "" || now - this.#watchedAt < WATCH_AGAIN_MS) return;
		const requestBody = { topicName, labelIds: ["INBOX"], labelFilterBehavior: "include" };
		await this.#call("watch", (users) => users.watch({ userId: "me", requestBody }));
		this.#watchedAt = now;
	}

	/** By the mail's id, and, because Gmail may give it another, by the nonce among what was sent lately. */
	async #look({ to }: Target, nonce: string): Promise<CreatedMessage | undefined> {
		const named = await this.#search(`rfc822msgid:${messageIdOf(nonce, await this.#me())}`, 1);
		if (named[0]?.id) return { messageId: named[0].id };
		for (const { id } of await this.#search(`in:sent newer_than:1d to:(${to})`, SENT_MAILS_MAX)) {
			if (!id) continue;
			const params = { userId: "me", id, format: "metadata", metadataHeaders: [NONCE_HEADER] };
			const { payload } = await this.#call("messages.get", (users) => users.messages.get(params));
			if (payload?.headers?.some(({ value }) => value === nonce)) return { messageId: id };
		}
		return undefined;
	}

	async #search(q: string, maxResults: number): Promise<gmail_v1.Schema$Message[]> {
		const params = { userId: "me", q, maxResults, includeSpamTrash: true };
		return (await this.#call("messages.list", (users) => users.messages.list(params))).messages ?? [];
	}

	async #read(stored: gmail_v1.Schema$Message, me: string): Promise<InboundMessage | undefined> {
		const { id, threadId, labelIds, raw, internalDate } = stored;
		if (!id || !threadId || !raw) throw new PlatformError("invalid", "messages.get: a mail without id, thread or text");
		const mail = await this.#parse(raw, id);
		if (!mail) return undefined;
		const inbound = readMail(mail, { id, threadId, labelIds: labelIds ?? [], receivedAt: Number(internalDate) }, me);
		if ("skipped" in inbound) {
			this.#tools.log.info({ id, reason: inbound.skipped }, "skipped a mail");
			return undefined;
		}
		return await withFiles(inbound, async ({ data }) => data);
	}

	/** Anybody can send a mail that no parser takes (nested without end): it is left in the mailbox, because those behind it are waiting. */
	async #parse(raw: string, id: string): Promise<Email | undefined> {
		try {
			return await PostalMime.parse(Buffer.from(raw, "base64url"));
		} catch (cause) {
			this.#tools.log.warn({ id, error: String(cause) }, "skipped a mail that cannot be read");
			return undefined;
		}
	}
}
