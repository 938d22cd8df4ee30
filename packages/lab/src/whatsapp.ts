/** WhatsApp's Cloud API with one phone number: messages with its limits, media, signed webhooks with messages and statuses. */

import { createHmac } from "node:crypto";
import { systemClock } from "@nexus-stream/protocol/clock";
import { type Backoff, backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { Fake, FakeOptions } from "./fake.ts";
import {
	Buckets,
	FakeRefusal,
	type FakeReply,
	type FakeRequest,
	ok,
	type Rate,
	readForm,
	serveFake,
	word,
} from "./http.ts";

export interface WhatsAppMessage {
	id: string;
	to: string;
	type: string;
	text: string;
	nonce?: string;
	quoted?: string;
	media?: { name: string; contentType: string; data: Buffer };
}

export interface WebhookCall {
	method: string;
	headers: Record<string, string>;
	body: Buffer;
}

export interface WhatsAppInbound {
	text: string;
	from?: string;
	id?: string;
	/** Sent as WhatsApp names it: image, audio, document … */
	media?: { kind: string; name?: string; contentType: string; data: Buffer };
	/** Milliseconds since the epoch. */
	at?: number;
	[extra: string]: unknown;
}

export interface WhatsAppFake extends Fake {
	raw(to: string): WhatsAppMessage[];
	/** The webhook: an address, or a function that returns the status. Requests without a 200 are repeated. */
	subscribe(hook: string | ((call: WebhookCall) => Promise<number>)): void;
	payload(message: WhatsAppInbound): object;
	status(message: WhatsAppMessage, status: string, errors?: object[]): object;
	signed(payload: object, secret?: string): WebhookCall;
	/** More than 24 hours have passed since this person wrote. */
	closeWindow(to: string): void;
	inject(message: WhatsAppInbound): Promise<void>;
}

export interface WhatsAppFakeOptions extends FakeOptions {
	/** Messages to one person: so many at once, then one every so many milliseconds. */
	pairRate?: Rate;
	accountRate?: Rate;
}

const PHONE = "1066100";
const APP_SECRET = "app-secret-of-the-fake";
const TEXT_CHARS_MAX = 4096;
const WEBHOOK_TRIES = 4;
const WEBHOOK_BACKOFF: Backoff = { firstMs: 100, maxMs: 800 };
const MEDIA_TYPES: ReadonlySet<string> = new Set([
	...["audio/aac", "audio/mp4", "audio/mpeg", "audio/amr", "audio/ogg", "audio/opus"],
	...["image/jpeg", "image/png", "image/webp", "video/mp4", "video/3gpp", "text/plain", "application/pdf"],
	...["application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"],
	...["wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation"].map(
		(kind) => `application/vnd.openxmlformats-officedocument.${kind}`,
	),
]);

class Refusal extends FakeRefusal {
	constructor(status: number, code: number, details: string, more: object = {}) {
		const error = { message: `(#${code}) ${details}`, type: "OAuthException", code, error_data: { details }, ...more };
		super(details, { status, body: { error } });
	}
}

const invalid = (details: string): Refusal => new Refusal(400, 100, details);

export async function createWhatsAppFake(options: WhatsAppFakeOptions = {}): Promise<WhatsAppFake> {
	const world = new World(options);
	const http = await serveFake({
		clock: options.clock,
		name: (request) => {
			const name = nameOf(request);
			return name === undefined ? undefined : { name, to: addresseeOf(request.json), body: request.json };
		},
		handle: (request) => world.handle(request, http.url),
		refuse: ({ kind }) =>
			(kind === "429"
				? new Refusal(400, 130429, "Message failed to send because too many were sent.")
				: new Refusal(500, 131000, "Something went wrong.")
			).reply,
	});
	return {
		...http,
		url: `${http.url}/v23.0`,
		settings: {
			phone_number_id: PHONE,
			access_token: "EAAG-1",
			app_secret: APP_SECRET,
			verify_token: "my-word",
			api_url: `${http.url}/v23.0`,
		},
		visible: (to) => world.of(to).map(({ text, media }) => (media ? `[${media.name}]` : text)),
		raw: (to) => world.of(to),
		subscribe: (hook) => world.subscribe(hook),
		payload: (message) => world.payload(message),
		status: (message, status, errors) => world.status(message, status, errors),
		signed: sign,
		closeWindow: (to) => void world.closed.add(to),
		inject: (message) => world.notify(world.payload(message)),
	};
}

class World {
	readonly messages: WhatsAppMessage[] = [];
	readonly media = new Map<string, { name: string; contentType: string; data: Buffer }>();
	readonly closed = new Set<string>();
	readonly #buckets = new Buckets();
	readonly #options: Required<WhatsAppFakeOptions>;
	#hook: ((call: WebhookCall) => Promise<number>) | undefined;
	#counter = 0;

	constructor(options: WhatsAppFakeOptions) {
		this.#options = { pairRate: [45, 6000], accountRate: [80, 12.5], clock: systemClock, ...options };
	}

	of(to: string): WhatsAppMessage[] {
		return this.messages.filter((message) => message.to === to);
	}

	subscribe(hook: string | ((call: WebhookCall) => Promise<number>)): void {
		const post = async ({ method, headers, body }: WebhookCall): Promise<number> =>
			(await fetch(hook as string, { method, headers, body: new Uint8Array(body) })).status;
		this.#hook = typeof hook === "string" ? post : hook;
	}

	handle(request: FakeRequest, url: string): FakeReply {
		if (request.headers.authorization !== "Bearer EAAG-1") throw new Refusal(401, 190, "Invalid OAuth access token.");
		const [, , first = "", second] = request.path.split("/");
		const media = this.media.get(first);
		if (request.method === "GET" && second === "bytes" && media) return { status: 200, body: media.data };
		if (request.method === "GET" && media) {
			const facts = { id: first, mime_type: media.contentType, file_size: media.data.length };
			return ok({ ...facts, url: `${url}/v23.0/${first}/bytes` });
		}
		if (first !== PHONE) throw new Refusal(400, 100, "Unsupported request: no such object.", { error_subcode: 33 });
		if (second === "media") return this.#upload(request);
		if (second === "messages") return this.#message(request);
		const facts = { display_phone_number: "+1 555 0100", verified_name: "Fake", quality_rating: "GREEN" };
		return ok({ ...facts, id: PHONE });
	}

	#upload(request: FakeRequest): FakeReply {
		const parts = readForm(request);
		const file = parts.find(({ name }) => name === "file");
		if (!file || !parts.some(({ name }) => name === "messaging_product")) throw invalid("file is required");
		const [type = ""] = (file.contentType ?? "").split(";");
		if (!MEDIA_TYPES.has(type)) {
			const types = [...MEDIA_TYPES].join(", ");
			throw invalid(`Param file must be a file with one of the following types: ${types}. Received '${type}'`);
		}
		return ok({ id: this.keep(file.filename ?? "file", file.contentType ?? "", file.data) });
	}

	keep(name: string, contentType: string, data: Buffer): string {
		const id = `9000${++this.#counter}`;
		this.media.set(id, { name, contentType, data });
		return id;
	}

	#message({ json, at }: FakeRequest): FakeReply {
		if (json.messaging_product !== "whatsapp") throw invalid("messaging_product is required");
		if (json.status === "read") {
			if (!String(json.message_id).startsWith("wamid.")) throw invalid("message_id is not valid");
			return ok({ success: true });
		}
		const to = addresseeOf(json);
		const message = this.#read(json, to);
		if (this.closed.has(to)) throw new Refusal(400, 131047, "Re-engagement message");
		if (this.#buckets.take(to, this.#options.pairRate, at) > 0) throw new Refusal(400, 131056, "Pair rate limit hit");
		if (this.#buckets.take("account", this.#options.accountRate, at) > 0)
			throw new Refusal(400, 130429, "Rate limit hit");
		this.messages.push(message);
		if (this.#hook) void this.notify(this.status(message, "sent")).catch(() => {});
		const contacts = [json.to === undefined ? { input: to, user_id: to } : { input: to, wa_id: to }];
		return ok({ messaging_product: "whatsapp", contacts, messages: [{ id: message.id }] });
	}

	#read(json: Record<string, unknown>, to: string): WhatsAppMessage {
		const known = json.to === undefined ? BSUID : /^\d{6,15}$/;
		if (!known.test(to)) throw new Refusal(400, 131026, "Message undeliverable");
		const type = String(json.type);
		const content = (json[type] ?? {}) as { body?: string; id?: string; filename?: string };
		const text = content.body ?? "";
		const stored = type === "text" ? undefined : this.media.get(content.id ?? "");
		if (type !== "text" && !stored) throw new Refusal(400, 131053, "Media upload error");
		if (type === "text" && text.trim() === "") throw invalid("text.body is required");
		if (text.length > TEXT_CHARS_MAX) throw invalid("text.body must be at most 4096 characters long.");
		const nonce = json.biz_opaque_callback_data;
		if (typeof nonce === "string" && nonce.length > 512) throw invalid("biz_opaque_callback_data is too long");
		const quoted = (json.context as { message_id?: string } | undefined)?.message_id;
		return {
			id: `wamid.OUT${++this.#counter}`,
			to,
			type,
			text,
			nonce: typeof nonce === "string" ? nonce : undefined,
			quoted,
			media: stored && { ...stored, name: content.filename ?? stored.name },
		};
	}

	payload({ text, from = "15550001", id, media, at = this.#options.clock.now(), ...extra }: WhatsAppInbound): object {
		const kept = media && this.keep(media.name ?? "file", media.contentType, media.data);
		const said = media
			? {
					type: media.kind,
					[media.kind]: {
						id: kept,
						mime_type: media.contentType,
						filename: media.name || undefined,
						caption: text || undefined,
					},
				}
			: text === ""
				? {}
				: { type: "text", text: { body: text } };
		const [sender, contact] = BSUID.test(from)
			? [{ from_user_id: from }, { user_id: from, profile: { name: "Ann", username: "@ann" } }]
			: [
					{ from, from_user_id: `US.${from}` },
					{ wa_id: from, user_id: `US.${from}`, profile: { name: "Ann" } },
				];
		const timestamp = String(Math.floor(at / 1000));
		const message = { ...sender, id: id ?? `wamid.IN${++this.#counter}`, timestamp, ...said };
		return changeOf({ contacts: [contact], messages: [{ ...message, ...extra }] });
	}

	status({ id, to, nonce }: WhatsAppMessage, status: string, errors?: object[]): object {
		const timestamp = String(Math.floor(this.#options.clock.now() / 1000));
		const recipient = BSUID.test(to) ? { recipient_user_id: to } : { recipient_id: to };
		const said = { id, status, timestamp, ...recipient, errors };
		return changeOf({ statuses: [{ ...said, biz_opaque_callback_data: nonce }] });
	}

	/** Resolves when it was answered with 200. */
	async notify(payload: object): Promise<void> {
		if (!this.#hook) throw new Error("the webhook has no subscriber");
		for (let tries = 0; tries < WEBHOOK_TRIES; tries++) {
			if ((await this.#hook(sign(payload))) === 200) return;
			await sleep(systemClock, backoffMs(WEBHOOK_BACKOFF, tries), undefined, "due");
		}
		throw new Error("the webhook was never answered with 200");
	}
}

/** The id of a person whose number is hidden; as the recipient it has a separate field, and a number takes precedence over it. */
const BSUID = /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/;

const addresseeOf = ({ to, recipient }: Record<string, unknown>): string => word(to ?? recipient);

const nameOf = ({ method, path, json }: FakeRequest): string | undefined => {
	if (method === "POST" && path.endsWith("/messages")) return json.status === "read" ? "typing" : "messages";
	return method === "POST" && path.endsWith("/media") ? "media" : undefined;
};

function changeOf(told: object): object {
	const value = { messaging_product: "whatsapp", metadata: { phone_number_id: PHONE }, ...told };
	return { object: "whatsapp_business_account", entry: [{ id: "1", changes: [{ field: "messages", value }] }] };
}

function sign(payload: object, secret = APP_SECRET): WebhookCall {
	const body = Buffer.from(JSON.stringify(payload));
	const signature = createHmac("sha256", secret).update(body).digest("hex");
	const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` };
	return { method: "POST", headers, body };
}
