/** A Twilio account that sends and receives text messages. */

import {
	type CreatedMessage,
	type InboundMessage,
	PlatformError,
	type SendOptions,
	type Session,
	type Settings,
	type Target,
	type Tools,
	type WebhookAnswer,
	type WebhookRequest,
} from "@nexus-stream/adapter";
import type { KeptMessage } from "@nexus-stream/adapter/memory/sent";
import { createdId } from "@nexus-stream/adapter/platform/json";
import { addressOf, download, networkError, withFiles } from "@nexus-stream/adapter/platform/network";
import type { Webhooks } from "@nexus-stream/adapter/platform/session";
import twilio from "twilio";
import { createApi, type TwilioApi } from "./api.ts";
import { readFailure, readMessage, type SmsFile, type SmsInboundMessage } from "./inbound.ts";

/** Twilio shows a message in its list a moment after it has taken it. */
const SETTLE_MS = 2000;
/** How many messages to one number are looked at. */
const LOOK_BACK_MESSAGES = 100;
/** What Twilio puts before the texts of accounts that have not paid yet. */
const TRIAL_PREFIX = "Sent from your Twilio trial account - ";

const EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>';

type SmsSettings = Settings<"account_sid" | "auth_token" | "from" | "webhook_url" | "api_url">;

export class SmsSession implements Session, Webhooks {
	readonly webhooks = this;
	readonly #sid: string;
	readonly #token: string;
	readonly #apiUrl: string;
	readonly #sender: string;
	readonly #webhookUrl: string;
	readonly #tools: Tools;

	constructor(settings: SmsSettings, tools: Tools) {
		this.#sid = settings.account_sid;
		this.#token = settings.auth_token;
		this.#apiUrl = addressOf("api_url", settings.api_url);
		this.#sender = settings.from;
		this.#webhookUrl = settings.webhook_url;
		this.#tools = tools;
		if (!/^AC[0-9a-f]{32}$/i.test(this.#sid)) {
			throw new PlatformError("invalid", "account_sid must be AC and 32 hexadecimal digits: copy it from the console.");
		}
	}

	async create(target: Target, text: string, { signal }: SendOptions): Promise<CreatedMessage> {
		const status = this.#webhookUrl === "" ? {} : { statusCallback: this.#webhookUrl };
		const params = { to: target.to, body: text, ...status, ...this.#senderOf(target) };
		const made = await this.#call("create", (api) => api.messages.create(params), signal);
		return { messageId: createdId("create", made.sid) };
	}

	async find(target: Target, nonce: string, text: string): Promise<CreatedMessage | undefined> {
		return await this.#tools.sent.findAlike(nonce, {
			list: (since) => this.#outbound(target, since),
			isAlike: ({ body }) => saysTheSame(body, text),
			waitsMs: [0, SETTLE_MS],
		});
	}

	async webhook(request: WebhookRequest): Promise<WebhookAnswer> {
		if (request.method !== "POST") return { status: 405, messages: [] };
		if (this.#webhookUrl === "") return { status: 403, body: "this account has no webhook_url", messages: [] };
		const fields = new URLSearchParams(request.body.toString("utf8"));
		const given = request.headers["x-twilio-signature"] ?? "";
		if (!twilio.validateRequest(this.#token, given, this.#webhookUrl, byName(fields))) {
			return { status: 403, body: "wrong signature", messages: [] };
		}
		const inbound = readMessage(fields, this.#tools.clock.now());
		const messages = inbound ? [await this.#withFiles(inbound)] : [];
		const failure = readFailure(fields);
		const failures = failure ? [failure] : [];
		return { status: 200, headers: { "content-type": "text/xml" }, body: EMPTY_TWIML, messages, failures };
	}

	async health() {
		const { friendlyName, status } = await this.#call("account", (api) => api.api.v2010.accounts(this.#sid).fetch());
		if (!status) throw new PlatformError("unavailable", "account: the answer is not Twilio's own. Check api_url.");
		const way = this.#webhookUrl === "" ? "no webhook_url, so nothing comes in" : `webhook ${this.#webhookUrl}`;
		return { ok: status === "active", detail: `${friendlyName} (${status}), ${this.#sender}, ${way}` };
	}

	/** The messages to this number, newest first. */
	async #outbound({ to }: Target, since: number): Promise<(KeptMessage & { body: string })[]> {
		const list = await this.#call("list", (api) => api.messages.list({ to, limit: LOOK_BACK_MESSAGES }));
		return list
			.filter(({ direction, dateCreated }) => direction.startsWith("outbound") && dateCreated.getTime() >= since)
			.map(({ sid, body, dateCreated }) => ({ ids: [sid], body, ts: dateCreated.getTime() }));
	}

	async #call<T>(name: string, work: (api: TwilioApi) => Promise<T>, signal?: AbortSignal): Promise<T> {
		try {
			return await work(createApi(this.#sid, this.#token, this.#apiUrl, signal));
		} catch (cause) {
			throw cause instanceof PlatformError ? cause : networkError(name, cause);
		}
	}

	#senderOf(target: Target): { from: string } | { messagingServiceSid: string } {
		const sender = typeof target.from === "string" ? target.from : this.#sender;
		return sender.startsWith("MG") ? { messagingServiceSid: sender } : { from: sender };
	}

	async #withFiles({ message, files }: SmsInboundMessage): Promise<InboundMessage> {
		return await withFiles(message, files, (file, bytesMax) => this.#fetchFile(file, bytesMax));
	}

	/** Our token goes to Twilio and nowhere else. */
	async #fetchFile({ url }: SmsFile, bytesMax: number): Promise<Buffer> {
		const address = URL.parse(url);
		const ours = address?.origin === new URL(this.#apiUrl).origin;
		const twilios = address?.protocol === "https:" && /(?:^|\.)twilio\.com$/.test(address.hostname);
		if (!address || !(ours || twilios)) throw new PlatformError("gone", "it is not kept at Twilio");
		const authorization = `Basic ${Buffer.from(`${this.#sid}:${this.#token}`).toString("base64")}`;
		return await download(address, { bytesMax, home: this.#apiUrl, headers: { authorization } });
	}
}

/** A name that comes more than once has all its values. */
function byName(fields: URLSearchParams): Record<string, string | string[]> {
	const names = [...new Set(fields.keys())];
	return Object.fromEntries(
		names.map((name) => {
			const values = fields.getAll(name);
			return [name, values.length === 1 ? (values[0] ?? "") : values];
		}),
	);
}

/** Smart Encoding of a messaging service exchanges punctuation; letters and digits stay. */
function saysTheSame(body: string, text: string): boolean {
	const said = body.startsWith(TRIAL_PREFIX) ? body.slice(TRIAL_PREFIX.length) : body;
	if (said.trim() === text.trim()) return true;
	const [a, b] = [said, text].map((each) => each.replace(/[^\p{L}\p{N}]/gu, ""));
	return a !== "" && a === b;
}
