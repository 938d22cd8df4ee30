/** A Twilio account that sends and receives text messages. */

import {
	type CreatedMessage,
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
import { addressOf, download, keptAt, networkError, withFiles } from "@nexus-stream/adapter/platform/network";
import type { Webhooks } from "@nexus-stream/adapter/platform/session";
import { refused } from "@nexus-stream/adapter/platform/webhook";
import twilio from "twilio";
import { createApi, type TwilioApi } from "./api.ts";
import { readFailure, readMessage, type SmsFile } from "./inbound.ts";

/** Twilio shows a message in its list a moment after it has taken it. */
const SETTLE_MS = 2000;
const LOOK_BACK_MESSAGES = 100;
/** Twilio puts this before the texts of trial accounts. */
const TRIAL_PREFIX = "Sent from your Twilio trial account - ";

const EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>';

type SmsSettings = Settings<"account_sid" | "auth_token" | "from" | "webhook_url" | "api_url">;

export class SmsSession implements Session, Webhooks {
	readonly webhooks = this;
	readonly #settings: SmsSettings;
	readonly #apiUrl: string;
	readonly #tools: Tools;

	constructor(settings: SmsSettings, tools: Tools) {
		this.#settings = settings;
		this.#apiUrl = addressOf("api_url", settings.api_url);
		this.#tools = tools;
		if (!/^AC[0-9a-f]{32}$/i.test(settings.account_sid)) {
			throw new PlatformError("invalid", "account_sid must be AC and 32 hexadecimal digits: copy it from the console.");
		}
	}

	async create(target: Target, text: string, { signal }: SendOptions): Promise<CreatedMessage> {
		const statusCallback = this.#settings.webhook_url || undefined;
		const params = { to: target.to, body: text, statusCallback, ...this.#senderOf(target) };
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
		const { webhook_url: url, auth_token: token } = this.#settings;
		if (request.method !== "POST") return refused(405);
		if (url === "") return refused(403, "this account has no webhook_url");
		const fields = new URLSearchParams(request.body.toString("utf8"));
		const given = request.headers["x-twilio-signature"] ?? "";
		if (!twilio.validateRequest(token, given, url, byName(fields))) return refused(403, "wrong signature");
		const inbound = readMessage(fields, this.#tools.clock.now());
		const messages = inbound ? [await withFiles(inbound, (...file) => this.#fetchFile(...file))] : [];
		const failure = readFailure(fields);
		const failures = failure ? [failure] : [];
		return { status: 200, headers: { "content-type": "text/xml" }, body: EMPTY_TWIML, messages, failures };
	}

	async health() {
		const { account_sid: sid, webhook_url: url, from } = this.#settings;
		const { friendlyName, status } = await this.#call("account", (api) => api.api.v2010.accounts(sid).fetch());
		if (!status) throw new PlatformError("unavailable", "account: the answer is not Twilio's own. Check api_url.");
		const way = url === "" ? "no webhook_url, so nothing comes in" : `webhook ${url}`;
		return { ok: status === "active", detail: `${friendlyName} (${status}), ${from}, ${way}` };
	}

	/** The messages to this number, newest first. */
	async #outbound({ to }: Target, since: number): Promise<(KeptMessage & { body: string })[]> {
		const list = await this.#call("list", (api) => api.messages.list({ to, limit: LOOK_BACK_MESSAGES }));
		return list
			.filter(({ direction, dateCreated }) => direction.startsWith("outbound") && dateCreated.getTime() >= since)
			.map(({ sid, body, dateCreated }) => ({ ids: [sid], body, ts: dateCreated.getTime() }));
	}

	async #call<T>(name: string, work: (api: TwilioApi) => Promise<T>, signal?: AbortSignal): Promise<T> {
		const { account_sid: sid, auth_token: token } = this.#settings;
		try {
			return await work(createApi(sid, token, this.#apiUrl, signal));
		} catch (cause) {
			throw cause instanceof PlatformError ? cause : networkError(name, cause);
		}
	}

	#senderOf(target: Target): { from: string } | { messagingServiceSid: string } {
		const sender = typeof target.from === "string" ? target.from : this.#settings.from;
		return sender.startsWith("MG") ? { messagingServiceSid: sender } : { from: sender };
	}

	async #fetchFile({ url }: SmsFile, bytesMax: number): Promise<Buffer> {
		const home = this.#apiUrl;
		const { account_sid: sid, auth_token: token } = this.#settings;
		const headers = { authorization: `Basic ${Buffer.from(`${sid}:${token}`).toString("base64")}` };
		return await download(keptAt("Twilio", url, home, /(?:^|\.)twilio\.com$/), { bytesMax, home, headers });
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
