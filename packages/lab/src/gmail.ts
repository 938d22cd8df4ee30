/** Gmail's API: threads by id, subject and references, a search, a history that ends somewhere, quota units, and the token address. */

import { systemClock } from "@nexus-stream/protocol/clock";
import MailComposer from "nodemailer/lib/mail-composer";
import PostalMime, { type Email } from "postal-mime";
import type { Fake, FakeOptions } from "./fake.ts";
import { type FakeReply, type FakeRequest, ok, serveFake } from "./http.ts";

export const GMAIL_ADDRESS = "agent@example.org";
export const GMAIL_CREDENTIALS = { client_id: "id", client_secret: "secret", refresh_token: "refresh" };

export interface GmailMessage {
	id: string;
	threadId: string;
	labelIds: string[];
	historyId: number;
	internalDate: number;
	raw: Buffer;
	mail: Email;
}

export interface GmailFakeOptions extends FakeOptions {
	/** Gmail replaces the ids of mails; searching by ours then finds nothing. */
	ownIds?: boolean;
	/** Quota units in a second. */
	units?: number;
}

export interface GmailFake extends Fake {
	raw(to: string): GmailMessage[];
	inject(message: {
		text: string;
		from?: string;
		to?: string;
		/** More fields of nodemailer. */
		mail?: object;
		threadId?: string;
		labelIds?: string[];
	}): Promise<void>;
	/** The history before now is no longer kept. */
	forgetHistory(): void;
	readonly messages: GmailMessage[];
	readonly watched: string[];
}

interface World {
	messages: GmailMessage[];
	watched: string[];
	oldest: number;
	/** Quota units by second. */
	spent: Map<number, number>;
	options: Required<GmailFakeOptions>;
}

const ROOT = "/gmail/v1/users/me";
const COSTS: Readonly<Record<string, number>> = {
	"messages.send": 100,
	"messages.get": 5,
	"messages.list": 5,
	"history.list": 2,
	watch: 100,
	getProfile: 1,
};

/** Gmail decides how much a page holds. */
const LIST_PAGE_MAILS = 25;

const refusal = (status: number, reason: string, message: string, headers = {}): FakeReply => ({
	status,
	headers,
	body: { error: { code: status, message, errors: [{ message, domain: "global", reason }] } },
});

export async function createGmailFake(options: GmailFakeOptions = {}): Promise<GmailFake> {
	const world: World = {
		messages: [],
		watched: [],
		oldest: 1000,
		spent: new Map(),
		options: { ownIds: false, units: 250, clock: systemClock, ...options },
	};
	const http = await serveFake({
		clock: world.options.clock,
		name: (request) => {
			const name = nameOf(request);
			return name && name !== "getProfile" && name !== "history.list" ? { name, to: "" } : undefined;
		},
		handle: (request) => handle(world, request),
		refuse: ({ kind, ms = 1000 }) => {
			if (kind !== "429") return { status: 502, body: "<html>Bad Gateway</html>" };
			return refusal(429, "rateLimitExceeded", "Too many requests", { "retry-after": String(Math.ceil(ms / 1000)) });
		},
	});
	const sentTo = (to: string) =>
		world.messages.filter(
			({ labelIds, mail }) => labelIds.includes("SENT") && (mail.to ?? []).some(({ address }) => address === to),
		);
	return {
		...http,
		settings: { ...GMAIL_CREDENTIALS, api_url: http.url, token_url: `${http.url}/token` },
		messages: world.messages,
		watched: world.watched,
		raw: sentTo,
		visible: (to) => sentTo(to).map(({ mail }) => mail.text?.trimEnd() ?? ""),
		forgetHistory() {
			world.oldest = newest(world);
		},
		async inject({
			text,
			from = "Ann <ann@example.com>",
			to = GMAIL_ADDRESS,
			mail = {},
			threadId,
			labelIds = ["INBOX"],
		}) {
			const composer = new MailComposer({ from, to, subject: "A question", text, ...mail });
			await put(world, await composer.compile().build(), labelIds, threadId);
		},
	};
}

const newest = (world: World): number => world.messages.at(-1)?.historyId ?? 1000;

async function put(world: World, raw: Buffer, labelIds: string[], threadId?: string): Promise<GmailMessage> {
	const id = (0x1000 + world.messages.length).toString(16);
	const mail = await PostalMime.parse(raw);
	const thread = world.messages.find((each) => each.threadId === threadId);
	const historyId = newest(world) + 7;
	const place = thread && belongs(mail, thread) ? thread.threadId : `t${id}`;
	const message = { id, threadId: place, labelIds, historyId, internalDate: world.options.clock.now(), raw, mail };
	world.messages.push(message);
	return message;
}

/** Gmail's three conditions: the thread's id, its subject, and a reference to one of its mails. */
function belongs(mail: Email, { mail: known }: GmailMessage): boolean {
	const bare = (subject: string | undefined) => (subject ?? "").replace(/^(?:re:\s*)+/i, "");
	const referred = `${mail.references ?? ""} ${mail.inReplyTo ?? ""}`;
	return (
		bare(mail.subject) === bare(known.subject) && known.messageId !== undefined && referred.includes(known.messageId)
	);
}

function nameOf({ method, path }: FakeRequest): string | undefined {
	if (path === "/token") return "token";
	if (!path.startsWith(ROOT)) return undefined;
	const rest = path.slice(ROOT.length + 1);
	if (method === "POST") return rest === "messages/send" ? "messages.send" : rest === "watch" ? "watch" : undefined;
	if (rest === "profile") return "getProfile";
	if (rest === "history") return "history.list";
	if (rest === "messages") return "messages.list";
	return /^messages\/\w+$/.test(rest) ? "messages.get" : undefined;
}

async function handle(world: World, request: FakeRequest): Promise<FakeReply> {
	const name = nameOf(request);
	if (name === "token") return token(request);
	if (request.headers.authorization !== "Bearer access") return refusal(401, "authError", "Invalid Credentials");
	if (!name) return refusal(404, "notFound", "Not Found");
	const second = Math.floor(request.at / 1000);
	const units = (world.spent.get(second) ?? 0) + (COSTS[name] ?? 0);
	world.spent.set(second, units);
	if (units > world.options.units) return refusal(403, "userRateLimitExceeded", "User-rate limit exceeded.");
	switch (name) {
		case "getProfile":
			return ok({ emailAddress: GMAIL_ADDRESS, historyId: String(newest(world)) });
		case "watch":
			world.watched.push(String(request.json.topicName));
			return ok({ historyId: String(newest(world)), expiration: String(world.options.clock.now() + 7 * 86_400_000) });
		case "messages.send":
			return await send(world, request);
		case "messages.list":
			return list(world, request.query);
		case "history.list":
			return history(world, request.query);
		default:
			return get(world, request);
	}
}

function token({ body }: FakeRequest): FakeReply {
	const form = new URLSearchParams(body.toString());
	const { client_id, client_secret, refresh_token } = GMAIL_CREDENTIALS;
	if (form.get("client_id") !== client_id || form.get("client_secret") !== client_secret) {
		return { status: 401, body: { error: "invalid_client", error_description: "Unauthorized" } };
	}
	if (form.get("refresh_token") !== refresh_token || form.get("grant_type") !== "refresh_token") {
		return { status: 400, body: { error: "invalid_grant", error_description: "Token has been expired or revoked." } };
	}
	return ok({ access_token: "access", expires_in: 3599, token_type: "Bearer", scope: "gmail.modify" });
}

async function send(world: World, { json }: FakeRequest): Promise<FakeReply> {
	const raw = Buffer.from(String(json.raw), "base64url");
	const threadId = typeof json.threadId === "string" ? json.threadId : undefined;
	const { to = [] } = await PostalMime.parse(raw);
	if (to.length === 0) return refusal(400, "invalidArgument", "Recipient address required");
	if (to.some(({ address }) => !/^\S+@\S+\.\S+$/.test(address ?? ""))) {
		return refusal(400, "invalidArgument", "Invalid To header");
	}
	if (raw.length > 35_000_000) return refusal(413, "uploadTooLarge", "Request too large");
	if (threadId !== undefined && !world.messages.some((each) => each.threadId === threadId)) {
		return refusal(404, "notFound", "Requested entity was not found.");
	}
	const { ownIds, clock } = world.options;
	const named = raw.toString("latin1").replace(/^Message-ID: .*$/im, `Message-ID: <CA${clock.now()}@mail.gmail.com>`);
	const stored = ownIds ? Buffer.from(named, "latin1") : raw;
	const { id, threadId: place } = await put(world, stored, ["SENT"], threadId);
	return ok({ id, threadId: place, labelIds: ["SENT"] });
}

function list(world: World, query: URLSearchParams): FakeReply {
	const q = query.get("q") ?? "";
	const [, messageId] = /rfc822msgid:(\S+)/.exec(q) ?? [];
	const [, to] = /to:\((\S+)\)/.exec(q) ?? [];
	const [, after] = /after:(\d+)/.exec(q) ?? [];
	const labels = [...query.getAll("labelIds"), ...(q.includes("in:sent") ? ["SENT"] : [])];
	const found = world.messages.filter(
		({ mail, labelIds, internalDate }) =>
			(messageId === undefined || mail.messageId === messageId) &&
			(to === undefined || (mail.to ?? []).some(({ address }) => address === to)) &&
			(after === undefined || internalDate >= Number(after) * 1000) &&
			labels.every((label) => labelIds.includes(label)),
	);
	const from = Number(query.get("pageToken") ?? 0);
	// Fewer than asked for, so that pages are turned.
	const end = from + Math.min(Number(query.get("maxResults") ?? 100), LIST_PAGE_MAILS);
	const messages = found.toReversed().slice(from, end);
	const more = end < found.length ? { nextPageToken: String(end) } : {};
	return ok(messages.length > 0 ? { messages: messages.map(({ id, threadId }) => ({ id, threadId })), ...more } : {});
}

function history(world: World, query: URLSearchParams): FakeReply {
	const start = Number(query.get("startHistoryId"));
	if (start < world.oldest) return refusal(404, "notFound", "Requested entity was not found.");
	// Two entries a page, so that pages are turned.
	const all = world.messages.filter(
		({ historyId, labelIds }) => historyId > start && labelIds.includes(query.get("labelId") ?? ""),
	);
	const from = Number(query.get("pageToken") ?? 0);
	const page = all.slice(from, from + 2);
	const entries = page.map(({ id, threadId, historyId, labelIds }) => ({
		id: String(historyId),
		messages: [{ id, threadId }],
		messagesAdded: [{ message: { id, threadId, labelIds } }],
	}));
	const more = from + 2 < all.length ? { nextPageToken: String(from + 2) } : {};
	return ok({ history: entries.length > 0 ? entries : undefined, historyId: String(newest(world)), ...more });
}

function get(world: World, { path, query }: FakeRequest): FakeReply {
	const message = world.messages.find(({ id }) => id === path.split("/").at(-1));
	if (!message) return refusal(404, "notFound", "Requested entity was not found.");
	const { id, threadId, labelIds, internalDate, raw, mail } = message;
	const facts = { id, threadId, labelIds, internalDate: String(internalDate) };
	if (query.get("format") === "raw") return ok({ ...facts, raw: raw.toString("base64url") });
	const wanted = query.getAll("metadataHeaders").map((name) => name.toLowerCase());
	const headers = mail.headers.filter(({ key }) => wanted.includes(key));
	const named = headers.map(({ originalKey, value }) => ({ name: originalKey, value }));
	return ok({ ...facts, payload: { headers: named } });
}
