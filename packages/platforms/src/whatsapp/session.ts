/** A phone number on WhatsApp's Cloud API: its calls, each refusal in the words of all platforms. */

import { createHmac } from "node:crypto";
import {
	type CreatedMessage,
	type HealthReport,
	type Pace,
	PlatformError,
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
import { addressOf, download, keptAt, sameSecret, withFiles } from "@nexus-stream/adapter/platform/network";
import { cannotTell } from "@nexus-stream/adapter/platform/platform-error";
import type { Attaching, Webhooks } from "@nexus-stream/adapter/platform/session";
import { readPost, refused, secretFault } from "@nexus-stream/adapter/platform/webhook";
import type { MessageFailure } from "@nexus-stream/adapter/port";
import { sleep } from "@nexus-stream/protocol/retry";
import { digitsOf, isWhatsAppId } from "../chats.ts";
import { createGraph, type GraphApi } from "./api.ts";
import { codeOf, explain, PAIR_LIMIT_CODE } from "./faults.ts";
import { readPayload, type WhatsAppFile, type WhatsAppStatus } from "./inbound.ts";
import { FULL, isRested, paceOf, refuse, spend, type WhatsAppAllowance, waitMs } from "./pace.ts";

/** How long a message's status may take to come. */
const STATUS_MS = 25_000;
const STATUS_EVERY_MS = 250;
const CHATS_KEPT = 1000;
const FAILURE_KEY = "failure";
const META_HOSTS = /(?:^|\.)(?:facebook|fbcdn|fbsbx|whatsapp)\.(?:com|net)$/;

type WhatsAppSettings = Settings<
	"phone_number_id" | "access_token" | "app_secret" | "verify_token" | "quote" | "api_url"
>;

export class WhatsAppSession implements Session, Attaching, Webhooks {
	readonly attaching = this;
	readonly webhooks = this;
	readonly #settings: WhatsAppSettings;
	readonly #phone: string;
	readonly #apiUrl: string;
	readonly #graph: GraphApi;
	readonly #tools: Tools;
	readonly #allowances = new Map<string, WhatsAppAllowance>();

	constructor(settings: WhatsAppSettings, tools: Tools) {
		this.#settings = settings;
		this.#phone = settings.phone_number_id;
		this.#apiUrl = addressOf("api_url", settings.api_url);
		this.#graph = createGraph(this.#apiUrl, settings.access_token);
		this.#tools = tools;
		if (!/^\d+$/.test(this.#phone)) {
			throw new PlatformError("invalid", "phone_number_id must be digits: it is the number's id, not the number.");
		}
	}

	pace(target: Target): Pace {
		return paceOf(this.#allowances.get(target.to) ?? FULL, this.#tools.clock.now());
	}

	create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		return this.#send(target, { type: "text", text: { body: text, preview_url: false } }, options);
	}

	async upload(attachment: WireAttachment, signal: AbortSignal): Promise<string> {
		const { name, data } = attachment;
		const contentType = takenAs(attachment.contentType);
		const form = new FormData();
		form.set("messaging_product", "whatsapp");
		form.set("type", contentType);
		form.set("file", new Blob([new Uint8Array(Buffer.from(data, "base64"))], { type: contentType }), name);
		const { id } = await this.#graph.post("media", `${this.#phone}/media`, form, signal);
		return String(id);
	}

	async attach(
		target: Target,
		{ name, contentType }: WireAttachment,
		options: SendOptions,
		id: string,
	): Promise<CreatedMessage> {
		const kind = kindOf(takenAs(contentType));
		const media = kind === "document" ? { id, filename: name } : { id };
		return await this.#send(target, { type: kind, [kind]: media }, options);
	}

	/** Shown for at most 25 seconds, or until the next message; it also marks the message as read. */
	async typing(target: Target, on: boolean): Promise<void> {
		if (!on || target.reply_to === undefined) return;
		const typing_indicator = { type: "text" };
		const params = { messaging_product: "whatsapp", status: "read", message_id: target.reply_to, typing_indicator };
		await this.#graph.post("typing", `${this.#phone}/messages`, params);
	}

	/** A status names the nonce of its message; without a status the outcome is unknown. */
	async find(_target: Target, nonce: string): Promise<CreatedMessage | undefined> {
		const { clock, sent } = this.#tools;
		const until = clock.now() + STATUS_MS;
		for (;;) {
			const messageId = sent.of(nonce);
			if (messageId !== undefined) return { messageId };
			if (!sent.mayHaveLeft(nonce)) return undefined;
			if (clock.now() >= until) break;
			await sleep(clock, STATUS_EVERY_MS);
		}
		throw cannotTell("No status of the message has come, and WhatsApp has no other way to tell.");
	}

	async webhook(request: WebhookRequest): Promise<WebhookAnswer> {
		const { app_secret, verify_token } = this.#settings;
		if (request.method === "GET") return verify(request.query, verify_token);
		const opened = readPost(request, (given) => signatureFault(given, app_secret));
		if (!("payload" in opened)) return opened;
		const { inbound, statuses } = readPayload(opened.payload, this.#phone, this.#tools.clock.now());
		const failures = statuses.flatMap((status) => this.#note(status) ?? []);
		const messages = await Promise.all(inbound.map((each) => withFiles(each, (...file) => this.#fetchFile(...file))));
		return { status: 200, messages, failures };
	}

	async health(): Promise<HealthReport> {
		const fields = "display_phone_number,verified_name,quality_rating";
		const number = await this.#graph.get("number", `${this.#phone}?fields=${fields}`);
		if (typeof number.display_phone_number !== "string") {
			throw new PlatformError("unavailable", "number: the answer is not WhatsApp's own. Check api_url.");
		}
		const { app_secret, verify_token } = this.#settings;
		const deaf = app_secret === "" || verify_token === "" ? "; set app_secret and verify_token to hear people" : "";
		const failure = this.#tools.state.get(FAILURE_KEY);
		const last = failure === undefined ? "" : `; last message that was not delivered: ${failure}`;
		const {
			verified_name: name,
			display_phone_number: shown,
			quality_rating: quality,
		} = number as Record<string, string>;
		return { ok: true, detail: `${name} ${shown}, quality ${quality}${deaf}${last}` };
	}

	async #send(target: Target, content: object, options: SendOptions): Promise<CreatedMessage> {
		const { nonce, signal } = options;
		const quoted =
			this.#settings.quote === "true" && target.reply_to !== undefined
				? { context: { message_id: target.reply_to } }
				: {};
		const params = {
			messaging_product: "whatsapp",
			recipient_type: "individual",
			...recipientOf(target),
			...content,
			...quoted,
			biz_opaque_callback_data: nonce,
		};
		const answer = await this.#counted(target, () =>
			this.#graph.post("messages", `${this.#phone}/messages`, params, signal),
		);
		const made = Array.isArray(answer.messages) ? (answer.messages[0] as { id?: string } | undefined) : undefined;
		return { messageId: createdId("messages", made?.id) };
	}

	/** Keeps account of how fast this person is written to. */
	async #counted<T>(target: Target, work: () => Promise<T>): Promise<T> {
		const { clock } = this.#tools;
		const before = this.#allowances.get(target.to) ?? FULL;
		try {
			const result = await work();
			this.#keep(target.to, spend(before, clock.now()));
			return result;
		} catch (cause) {
			if (codeOf(cause) !== PAIR_LIMIT_CODE || !(cause instanceof PlatformError)) throw cause;
			const refused = refuse(before, clock.now());
			this.#keep(target.to, refused);
			throw new PlatformError(cause.fault, cause.message, { retryAfterMs: waitMs(refused), cause });
		}
	}

	#keep(chat: string, allowance: WhatsAppAllowance): void {
		this.#allowances.set(chat, allowance);
		if (this.#allowances.size <= CHATS_KEPT) return;
		const now = this.#tools.clock.now();
		for (const [each, known] of this.#allowances) if (isRested(known, now)) this.#allowances.delete(each);
	}

	/** Records the status of one of our messages; returns a failure when it was not delivered. */
	#note({ messageId, nonce, status, to, errors }: WhatsAppStatus): MessageFailure | undefined {
		if (nonce && this.#tools.sent.of(nonce) === undefined) this.#tools.sent.add(nonce, messageId);
		if (status !== "failed") return undefined;
		const error = errors.map(explain).join("; ") || "no reason given";
		this.#tools.state.set(FAILURE_KEY, `to ${to}: ${error}`);
		return { messageId, nonce: nonce || undefined, error };
	}

	async #fetchFile({ mediaId }: WhatsAppFile, bytesMax: number): Promise<Buffer> {
		const { url, file_size: bytes } = await this.#graph.get("media", encodeURIComponent(mediaId));
		if (typeof bytes === "number" && bytes > bytesMax) throw new PlatformError("invalid", `it has ${bytes} bytes`);
		const address = keptAt("WhatsApp", String(url), this.#apiUrl, META_HOSTS);
		const headers = { authorization: `Bearer ${this.#settings.access_token}` };
		return await download(address, { bytesMax, home: this.#apiUrl, headers });
	}
}

/** Meta verifies the address by a challenge. */
function verify(query: URLSearchParams, verifyToken: string): WebhookAnswer {
	const wrong = secretFault(query.get("hub.verify_token"), verifyToken, "verify token");
	if (query.get("hub.mode") !== "subscribe" || wrong !== undefined) return refused(403, "wrong verify token");
	const body = query.get("hub.challenge") ?? "";
	return { status: 200, headers: { "content-type": "text/plain" }, body, messages: [] };
}

/** Every request is signed over its bytes. */
function signatureFault({ headers, body }: WebhookRequest, appSecret: string): string | undefined {
	if (appSecret === "") return "this account has no app_secret";
	const expected = `sha256=${createHmac("sha256", appSecret).update(body).digest("hex")}`;
	return sameSecret(headers["x-hub-signature-256"] ?? "", expected) ? undefined : "wrong signature";
}

/** A number as people write it, or the id of a person whose number WhatsApp does not tell. */
const recipientOf = ({ to }: Target): { to: string } | { recipient: string } =>
	isWhatsAppId(to) ? { recipient: to } : { to: digitsOf(to) };

/** WhatsApp takes no other kind of text than plain text; the name tells what it is. */
const takenAs = (contentType: string): string =>
	/^(?:text\/|application\/(?:json|xml|yaml)\b)/.test(contentType) ? "text/plain" : contentType;

/** WhatsApp shows some kinds of files in their own way; the others are documents. */
function kindOf(given: string): "image" | "audio" | "video" | "document" {
	// "audio/ogg; codecs=opus"
	const contentType = given.split(";")[0]?.trim() ?? "";
	if (/^image\/(?:jpeg|png)$/.test(contentType)) return "image";
	if (/^audio\/(?:aac|amr|mpeg|mp4|ogg)$/.test(contentType)) return "audio";
	return /^video\/(?:mp4|3gpp)$/.test(contentType) ? "video" : "document";
}
