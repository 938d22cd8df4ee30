/** A Gmail account. */

import type { gmail_v1 } from "@googleapis/gmail";
import {
	type Account,
	addressOf,
	createdId,
	fetchFiles,
	harmless,
	type InboundMessage,
	keepListening,
	openSentLog,
	PlatformError,
	type SendOptions,
	type SentLog,
	type Session,
	sameSecret,
	type Target,
	type Tools,
	type WebhookAnswer,
	type WebhookRequest,
	type WireAttachment,
} from "@nexus-stream/adapter";
import PostalMime, { type Email } from "postal-mime";
import { createApi, DEFAULT_API_URL, DEFAULT_TOKEN_URL, type GmailCall } from "./api.ts";
import { compose, messageIdOf } from "./compose.ts";
import { NONCE_HEADER, readMail } from "./inbound.ts";
import { createMailbox, type Mailbox } from "./mailbox.ts";

const POLL_MS = 10_000;
/** With push, polling only brings what it has missed. */
const POLL_BESIDE_PUSH_MS = 60_000;
/** A watch ends after seven days. */
const WATCH_AGAIN_MS = 24 * 60 * 60_000;
/** Searching sees a mail a moment after it was sent. */
const SETTLE_MS = 3000;
const SENT_MAILS_MAX = 25;

type Emit = (message: InboundMessage) => Promise<void>;

export class GmailSession implements Session {
	private readonly call: GmailCall;
	private readonly mailbox: Mailbox;
	private readonly fromName: string;
	private readonly topic: string;
	private readonly webhookSecret: string;
	private readonly tools: Tools;
	private readonly sent: SentLog;
	private address: Promise<string> | undefined;
	private emit: Emit | undefined;
	private watchedAt = Number.NEGATIVE_INFINITY;

	constructor({ settings }: Account, tools: Tools) {
		this.call = createApi({
			clientId: settings.client_id ?? "",
			clientSecret: settings.client_secret ?? "",
			refreshToken: settings.refresh_token ?? "",
			apiUrl: addressOf("api_url", settings.api_url, DEFAULT_API_URL),
			tokenUrl: addressOf("token_url", settings.token_url, DEFAULT_TOKEN_URL),
		});
		this.fromName = settings.from_name ?? "";
		this.topic = settings.topic ?? "";
		this.webhookSecret = settings.webhook_secret ?? "";
		this.tools = tools;
		this.sent = openSentLog(tools);
		this.mailbox = createMailbox(this.call, tools);
	}

	create(target: Target, text: string, options: SendOptions): Promise<{ messageId: string }> {
		return this.createWith(target, text, [], options);
	}

	attach(target: Target, attachment: WireAttachment, options: SendOptions): Promise<{ messageId: string }> {
		return this.createWith(target, attachment.name, [attachment], options);
	}

	async createWith(
		target: Target,
		text: string,
		attachments: readonly WireAttachment[],
		{ nonce, signal }: SendOptions,
	): Promise<{ messageId: string }> {
		const from = { name: this.fromName, address: await harmless(this.me()) };
		const raw = await compose({ from, target, text, nonce, attachments });
		const requestBody = { raw, threadId: target.thread_id };
		return await this.sent.create(nonce, async () => {
			const sent = await this.call(
				"messages.send",
				(users, options) => users.messages.send({ userId: "me", requestBody }, options),
				signal,
			);
			return { messageId: createdId("messages.send", sent.id) };
		});
	}

	async find(target: Target, nonce: string): Promise<{ messageId: string } | undefined> {
		return await this.sent.find(nonce, async () => {
			const first = await this.look(target, nonce);
			if (first) return first;
			await new Promise<void>((resolve) => this.tools.clock.after(SETTLE_MS, resolve));
			return await this.look(target, nonce);
		});
	}

	async monitor(emit: Emit, signal: AbortSignal): Promise<void> {
		this.emit = emit;
		const { clock, log, listening } = this.tools;
		const pauseMs = this.topic === "" ? POLL_MS : POLL_BESIDE_PUSH_MS;
		await keepListening({ round: () => this.round(), pauseMs, signal, clock, log, listening });
	}

	/** A push says only that there is something; what it is comes with a poll, and the push is confirmed after it. */
	async webhook({ method, query }: WebhookRequest): Promise<WebhookAnswer> {
		if (method !== "POST") return { status: 405, messages: [] };
		if (this.webhookSecret === "" || !sameSecret(query.get("secret") ?? "", this.webhookSecret)) {
			return { status: 401, body: "wrong secret", messages: [] };
		}
		if (!this.emit) return { status: 503, body: "not listening yet", messages: [] };
		await this.round();
		return { status: 204, messages: [] };
	}

	async health() {
		const address = await this.me();
		return { ok: true, detail: `${address}, ${this.topic === "" ? "polling" : `push by ${this.topic}`}` };
	}

	private async round(): Promise<void> {
		await this.watch();
		const me = await this.me();
		await this.mailbox.sync(async (stored) => {
			const message = await this.read(stored, me);
			if (message) await this.emit?.(message);
		});
	}

	private async watch(): Promise<void> {
		const now = this.tools.clock.now();
		if (this.topic === "" || now - this.watchedAt < WATCH_AGAIN_MS) return;
		const requestBody = { topicName: this.topic, labelIds: ["INBOX"], labelFilterBehavior: "include" };
		await this.call("watch", (users) => users.watch({ userId: "me", requestBody }));
		this.watchedAt = now;
	}

	private me(): Promise<string> {
		this.address ??= this.call("getProfile", (users) => users.getProfile({ userId: "me" })).then(
			({ emailAddress }) => emailAddress ?? "",
		);
		// A failure is not remembered.
		this.address.catch(() => {
			this.address = undefined;
		});
		return this.address;
	}

	/** By the mail's id, and, because Gmail may give it another, by the nonce among what was sent lately. */
	private async look({ to }: Target, nonce: string): Promise<{ messageId: string } | undefined> {
		const named = await this.search(`rfc822msgid:${messageIdOf(nonce, await this.me())}`, 1);
		if (named[0]?.id) return { messageId: named[0].id };
		for (const { id } of await this.search(`in:sent newer_than:1d to:(${to})`, SENT_MAILS_MAX)) {
			if (!id) continue;
			const params = { userId: "me", id, format: "metadata", metadataHeaders: [NONCE_HEADER] };
			const { payload } = await this.call("messages.get", (users) => users.messages.get(params));
			if (payload?.headers?.some(({ value }) => value === nonce)) return { messageId: id };
		}
		return undefined;
	}

	private async search(q: string, maxResults: number): Promise<gmail_v1.Schema$Message[]> {
		const params = { userId: "me", q, maxResults, includeSpamTrash: true };
		return (await this.call("messages.list", (users) => users.messages.list(params))).messages ?? [];
	}

	private async read(stored: gmail_v1.Schema$Message, me: string): Promise<InboundMessage | undefined> {
		const { id, threadId, labelIds, raw, internalDate } = stored;
		if (!id || !threadId || !raw) throw new PlatformError("invalid", "messages.get: a mail without id, thread or text");
		const mail = await this.parse(raw, id);
		if (!mail) return undefined;
		const inbound = readMail(mail, { id, threadId, labelIds: labelIds ?? [], receivedAt: Number(internalDate) }, me);
		if ("skipped" in inbound) {
			this.tools.log.info({ id, reason: inbound.skipped }, "skipped a mail");
			return undefined;
		}
		const { message, files } = inbound;
		const { attachments, notes } = await fetchFiles(files, async ({ data }) => data);
		const text = [message.text, ...notes].filter((each) => each !== "").join("\n");
		return { ...message, text, ...(attachments.length > 0 ? { attachments } : {}) };
	}

	/** Anybody can send a mail that no parser takes (nested without end): it is left in the mailbox, because those behind it are waiting. */
	private async parse(raw: string, id: string): Promise<Email | undefined> {
		try {
			return await PostalMime.parse(Buffer.from(raw, "base64url"));
		} catch (cause) {
			this.tools.log.warn({ id, error: String(cause) }, "skipped a mail that cannot be read");
			return undefined;
		}
	}
}
