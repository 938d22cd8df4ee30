/** Twilio's messaging API: the checks on numbers and length, the list of messages, media, and webhooks with their signature. */

import { createHmac } from "node:crypto";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Fake, FakeOptions } from "./fake.ts";
import { Buckets, type FakeReply, type FakeRequest, ok, type Rate, serveFake } from "./http.ts";

export const TWILIO_SID = `AC${"0123456789abcdef".repeat(2)}`;
export const TWILIO_TOKEN = "fake-auth-token";
export const TWILIO_NUMBER = "+15005550006";
/** Twilio's own number whose queue is full. */
export const TWILIO_FULL = "+15005550008";
export const TWILIO_SERVICE = `MG${"fedcba9876543210".repeat(2)}`;

/** Twilio's own numbers for tests, and what they are refused with. */
const MAGIC: Readonly<Record<string, readonly [code: number, message: string]>> = {
	"+15005550001": [21211, "The 'To' number +15005550001 is not a valid phone number."],
	"+15005550002": [21612, "The 'To' phone number: +15005550002, is not currently reachable"],
	"+15005550003": [21408, "Permission to send an SMS has not been enabled for the region"],
	"+15005550004": [21610, "Attempt to send to unsubscribed recipient"],
	"+15005550009": [21614, "'To' number: +15005550009, is not a valid mobile number"],
};

export interface TwilioMessage {
	sid: string;
	to: string;
	from: string;
	body: string;
	created: number;
}

export interface SmsFakeOptions extends FakeOptions {
	/** Calls that the account takes at once, and how fast more are allowed. */
	rate?: Rate;
	/** Puts this before every text, as for trial accounts. */
	prefix?: string;
	webhookUrl?: string;
}

export interface SmsFake extends Fake {
	raw(to: string): TwilioMessage[];
	/** The value of `X-Twilio-Signature`. */
	sign(url: string, fields: URLSearchParams): string;
	fieldsOf(message: SmsInbound): URLSearchParams;
}

export interface SmsInbound {
	text: string;
	from?: string;
	to?: string;
	media?: Buffer;
	[extra: string]: unknown;
}

interface World {
	messages: TwilioMessage[];
	media: Map<string, Buffer>;
	buckets: Buckets;
	rate: Rate;
	prefix: string;
	count: number;
	clock: Clock;
}

const ROOT = `/2010-04-01/Accounts/${TWILIO_SID}`;

const refusal = (status: number, code: number, message: string, headers = {}): FakeReply => ({
	status,
	headers,
	body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
});

export async function createSmsFake(options: SmsFakeOptions = {}): Promise<SmsFake> {
	const world: World = {
		messages: [],
		media: new Map(),
		buckets: new Buckets(),
		rate: options.rate ?? [100, 10],
		prefix: options.prefix ?? "",
		count: 0,
		clock: options.clock ?? systemClock,
	};
	const http = await serveFake({
		clock: world.clock,
		name: (request) => {
			if (!request.path.includes("/Messages.json")) return undefined;
			const fields = formOf(request);
			return {
				name: request.method === "POST" ? "messages.create" : "messages.list",
				to: fields.get("To") ?? request.query.get("To") ?? "",
				body: Object.fromEntries(fields),
			};
		},
		handle: (request) => handle(world, request),
		refuse: ({ kind, ms }) =>
			kind === "429"
				? refusal(429, 20429, "Too Many Requests", ms ? { "retry-after": String(Math.ceil(ms / 1000)) } : {})
				: refusal(500, 20500, "Internal Server Error"),
	});
	const fake: SmsFake = {
		...http,
		settings: { account_sid: TWILIO_SID, auth_token: TWILIO_TOKEN, from: TWILIO_NUMBER, api_url: http.url },
		raw: (to) => world.messages.filter((each) => each.to === to),
		visible: (to) => fake.raw(to).map(({ body }) => body),
		sign,
		fieldsOf: (message) => fieldsOf(world, http.url, message),
		async inject(message) {
			const url = options.webhookUrl;
			if (url === undefined) throw new Error("the fake has no webhookUrl");
			const body = fake.fieldsOf(message);
			const response = await fetch(url, { method: "POST", headers: { "x-twilio-signature": sign(url, body) }, body });
			if (!response.ok) throw new Error(`11200: the webhook answered ${response.status}`);
		},
	};
	return fake;
}

function sign(url: string, fields: URLSearchParams): string {
	const signed = [...fields]
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.reduce((text, [name, value]) => text + name + value, url);
	return createHmac("sha1", TWILIO_TOKEN).update(signed).digest("base64");
}

function fieldsOf(world: World, url: string, message: SmsInbound): URLSearchParams {
	const { text, from = "+15551230001", to = TWILIO_NUMBER, media, ...extra } = message;
	const sid = sidOf(media ? "MM" : "SM", ++world.count);
	const path = `${ROOT}/Messages/${sid}/Media/ME1`;
	if (media) world.media.set(path, media);
	return new URLSearchParams({
		MessageSid: sid,
		AccountSid: TWILIO_SID,
		SmsStatus: "received",
		From: from,
		To: to,
		Body: text,
		NumMedia: media ? "1" : "0",
		...(media ? { MediaUrl0: url + path, MediaContentType0: "image/png" } : {}),
		...(extra as Record<string, string>),
	});
}

const sidOf = (kind: string, count: number): string => `${kind}${count.toString(16).padStart(32, "0")}`;

const formOf = (request: FakeRequest): URLSearchParams => new URLSearchParams(request.body.toString("utf8"));

function handle(world: World, request: FakeRequest): FakeReply {
	const expected = `Basic ${Buffer.from(`${TWILIO_SID}:${TWILIO_TOKEN}`).toString("base64")}`;
	if (request.headers.authorization !== expected) return refusal(401, 20003, "Authenticate");
	const media = world.media.get(request.path);
	if (media) return { status: 200, headers: { "content-type": "image/png" }, body: media };
	if (request.path === `${ROOT}.json`) {
		return ok({ sid: TWILIO_SID, friendly_name: "Fake account", status: "active", type: "Full" });
	}
	if (request.path !== `${ROOT}/Messages.json`) {
		return refusal(404, 20404, `The requested resource ${request.path} was not found`);
	}
	if (world.buckets.take("account", world.rate, request.at) > 0) return refusal(429, 20429, "Too Many Requests");
	return request.method === "POST" ? create(world, formOf(request)) : list(world, request);
}

function create(world: World, fields: URLSearchParams): FakeReply {
	const [to, body] = [fields.get("To") ?? "", fields.get("Body") ?? ""];
	const from = fields.get("MessagingServiceSid") === TWILIO_SERVICE ? TWILIO_NUMBER : fields.get("From");
	if (to === "") return refusal(400, 21604, "A 'To' phone number is required.");
	if (!/^\+[1-9]\d{6,14}$/.test(to)) return refusal(400, 21211, `Invalid 'To' Phone Number: ${to}`);
	const magic = MAGIC[to];
	if (magic) return refusal(400, ...magic);
	if (from === TWILIO_FULL)
		return refusal(400, 21611, "This 'From' number has exceeded the maximum number of queued messages");
	if (from !== TWILIO_NUMBER) return refusal(400, 21606, `The 'From' phone number ${from} is not a valid number`);
	if (body.trim() === "") return refusal(400, 21602, "Message body is required.");
	if (body.length > 1600) return refusal(400, 21617, "The concatenated message body exceeds the 1600 character limit.");
	const message = { sid: sidOf("SM", ++world.count), to, from, body: world.prefix + body, created: world.clock.now() };
	world.messages.push(message);
	return { status: 201, body: wire(message) };
}

const wire = ({ sid, to, from, body, created }: TwilioMessage) => ({
	sid,
	to,
	from,
	body,
	account_sid: TWILIO_SID,
	status: "queued",
	direction: "outbound-api",
	date_created: new Date(created).toUTCString(),
	date_sent: null,
	date_updated: new Date(created).toUTCString(),
	num_segments: "1",
	num_media: "0",
	error_code: null,
	error_message: null,
	uri: `${ROOT}/Messages/${sid}.json`,
});

function list(world: World, { query }: FakeRequest): FakeReply {
	const [to, from, size] = [query.get("To"), query.get("From"), Number(query.get("PageSize") ?? 50)];
	const found = world.messages
		.filter((each) => (to === null || each.to === to) && (from === null || each.from === from))
		.toReversed();
	return ok({ messages: found.slice(0, size).map(wire), page: 0, page_size: size, next_page_uri: null });
}
