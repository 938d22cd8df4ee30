/** Discord's REST API and gateway: requests checked by the official schemas, buckets with their headers, nonces, sessions that resume. */

import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { MessageCreateRequestSchema, MessageEditRequestPartialSchema } from "discord-api-spec/zod";
import type { Fake } from "../fake.ts";
import { type FakeHttp, type FakeReply, type FakeRequest, readForm, serveFake } from "../http.ts";
import { createInteractions, type Interactions, readComponents } from "./buttons.ts";
import { createGateway, type FakeGateway } from "./gateway.ts";

export const DISCORD_TOKEN = "fake-token.for.discord";
const EPOCH_MS = 1_420_070_400_000;
/** "The past few minutes", of real time: so are the waits of the daemon, which repeats a nonce. */
const NONCE_LIFE_MS = 300_000;
const CONTENT_MAX = 2000;

type Rate = [limit: number, windowMs: number];

export interface DiscordFakeOptions {
	createRate?: Rate;
	editRate?: Rate;
	/** Whether the privileged message content intent is enabled in the portal. */
	messageContent?: boolean;
	/** The platform's clock. Rate limits use the caller's time. */
	clock?: Clock;
}

export interface DiscordMessage {
	id: string;
	channel_id: string;
	content: string;
	author: { id: string; username: string; bot?: boolean };
	attachments: { id: string; filename: string; size: number; url: string; content_type?: string }[];
	message_reference?: { message_id: string };
	flags: number;
	edits: number;
	files: Buffer[];
	components: unknown[];
}

export interface DiscordFake extends Fake {
	buttons: NonNullable<Fake["buttons"]>;
	press: NonNullable<Fake["press"]>;
	/** The note that the person who pressed reads, once it has come. */
	notes(press: number): readonly string[];
	readonly token: string;
	readonly me: { id: string; username: string };
	readonly gateway: FakeGateway;
	/** Our messages in a channel. */
	raw(to: string): DiscordMessage[];
	remove(to: string, messageId: string): void;
}

interface World {
	http: FakeHttp;
	gateway: FakeGateway;
	interactions: Interactions;
	/** Notes, one for each press. */
	notes: (readonly string[])[];
	me: { id: string; username: string };
	messages: Map<string, DiscordMessage[]>;
	files: Map<string, Buffer>;
	nonces: Map<string, { message: DiscordMessage; at: number }>;
	windows: Map<string, { used: number; resetAt: number }>;
	options: Required<DiscordFakeOptions>;
	ids: { last: bigint };
}

class Refusal extends Error {
	readonly reply: FakeReply;

	constructor(status: number, code: number, message: string, errors?: object) {
		super(message);
		this.reply = { status, body: { code, message, ...(errors ? { errors } : {}) } };
	}
}

export async function createDiscordFake(options: DiscordFakeOptions = {}): Promise<DiscordFake> {
	const world = {
		me: { id: "900000000000000001", username: "nexus" },
		interactions: createInteractions(),
		notes: [],
		messages: new Map(),
		files: new Map(),
		nonces: new Map(),
		windows: new Map(),
		options: { createRate: [5, 5000], editRate: [5, 1000], messageContent: true, clock: systemClock, ...options },
		ids: { last: 0n },
	} as unknown as World;
	world.http = await serveFake({
		clock: world.options.clock,
		name: nameOf,
		handle: (request) => handle(world, request),
		refuse: ({ kind, ms = 1000 }) =>
			kind === "429" ? tooMany(ms / 1000, true) : { status: 503, body: "upstream connect error" },
	});
	world.gateway = createGateway(world.http.server, { token: DISCORD_TOKEN, me: world.me, ...world.options });
	const of = (to: string) => (world.messages.get(to) ?? []).filter(({ author }) => author.id === world.me.id);
	return {
		url: `${world.http.url}/api`,
		token: DISCORD_TOKEN,
		me: world.me,
		gateway: world.gateway,
		begun: world.http.begun,
		calls: world.http.calls,
		fault: world.http.fault,
		async close() {
			await world.gateway.close();
			await world.http.close();
		},
		raw: of,
		visible: (to) => of(to).map(({ content }) => content),
		remove: (to, messageId) =>
			void world.messages.set(
				to,
				(world.messages.get(to) ?? []).filter(({ id }) => id !== messageId),
			),
		inject: (message) => inject(world, message),
		buttons: (to) => of(to).map((message) => buttonsOf(message).map(({ label = "" }) => label)),
		press: (to, nth, label, from) => press(world, of(to)[nth], label, from),
		notes: (nth) => world.notes[nth] ?? [],
	};
}

const CHANNEL = /^\/api\/v10\/channels\/(\d+)\/(messages|typing)(?:\/(\d+))?$/;

function nameOf(request: FakeRequest): { name: string; to: string; body: unknown } | undefined {
	const [, channel = "", what, message] = CHANNEL.exec(request.path) ?? [];
	if (!what) return undefined;
	const name = `${request.method} ${what}${message === undefined ? "" : "/:id"}`;
	return { name, to: channel, body: bodyOf(request) };
}

function bodyOf(request: FakeRequest): Record<string, unknown> {
	const payload = readForm(request).find(({ name }) => name === "payload_json");
	return payload ? JSON.parse(payload.data.toString("utf8")) : request.json;
}

function tooMany(seconds: number, global: boolean): FakeReply {
	const body = {
		message: "You are being rate limited.",
		retry_after: seconds,
		global,
	};
	const scope: Record<string, string> = global
		? { "x-ratelimit-global": "true", "x-ratelimit-scope": "global" }
		: { "x-ratelimit-scope": "user" };
	return { status: 429, headers: { "retry-after": String(Math.ceil(seconds)), ...scope }, body };
}

function handle(world: World, request: FakeRequest): FakeReply {
	const file = world.files.get(request.path);
	if (file) return { status: 200, body: file };
	const answered = world.interactions.handle(request);
	if (answered) return answered;
	try {
		if (request.headers.authorization !== `Bot ${DISCORD_TOKEN}`) throw new Refusal(401, 0, "401: Unauthorized");
		return route(world, request);
	} catch (cause) {
		if (cause instanceof Refusal) return cause.reply;
		throw cause;
	}
}

function route(world: World, request: FakeRequest): FakeReply {
	const { method, path } = request;
	const [, channel = "", what, messageId] = CHANNEL.exec(path) ?? [];
	if (path === "/api/v10/gateway/bot") {
		const limit = { total: 1000, remaining: 999, reset_after: 14_400_000, max_concurrency: 1 };
		return { status: 200, body: { url: world.http.url.replace("http", "ws"), shards: 1, session_start_limit: limit } };
	}
	if (path === "/api/v10/users/@me") return { status: 200, body: world.me };
	if (path === "/api/v10/users/@me/channels") {
		return { status: 200, body: { id: `7${String(request.json.recipient_id)}`, type: 1 } };
	}
	if (!what) throw new Refusal(404, 0, "404: Not Found");
	checkAccess(channel);
	// Discord sends a content type with its empty answers too.
	if (what === "typing") return { status: 204, headers: { "content-type": "application/json" } };
	if (method === "GET") return list(world, channel, Number(request.query.get("limit") ?? 50));
	const { createRate, editRate } = world.options;
	if (method === "POST") return limited(world, request, createRate, () => create(world, channel, request));
	if (method === "DELETE") return remove(world, channel, messageId ?? "");
	return limited(world, request, editRate, () => edit(world, channel, messageId ?? "", request));
}

function checkAccess(channel: string): void {
	if (channel === "404") throw new Refusal(404, 10003, "Unknown Channel");
	if (channel === "403") throw new Refusal(403, 50001, "Missing Access");
	if (channel === "160002") {
		throw new Refusal(400, 160002, "Cannot reply without permission to read message history");
	}
	if (channel === "50013") throw new Refusal(403, 50013, "Missing Permissions");
}

/** A bucket: so many calls in a window that begins with the first. */
function limited(world: World, request: FakeRequest, [limit, windowMs]: Rate, work: () => object): FakeReply {
	const { at: now, method } = request;
	const key = `${method} ${CHANNEL.exec(request.path)?.[1]}`;
	const known = world.windows.get(key);
	const window = known && known.resetAt > now ? known : { used: 0, resetAt: now + windowMs };
	world.windows.set(key, window);
	const seconds = (window.resetAt - now) / 1000;
	const remaining = Math.max(0, limit - window.used - 1);
	const headers = {
		"x-ratelimit-limit": String(limit),
		"x-ratelimit-remaining": String(remaining),
		"x-ratelimit-reset-after": seconds.toFixed(3),
		"x-ratelimit-reset": (window.resetAt / 1000).toFixed(3),
		"x-ratelimit-bucket": method,
	};
	if (window.used >= limit) {
		const reply = tooMany(seconds, false);
		return { ...reply, headers: { ...headers, ...reply.headers } };
	}
	window.used++;
	try {
		return { status: 200, headers, body: work() };
	} catch (cause) {
		if (cause instanceof Refusal) return { ...cause.reply, headers };
		throw cause;
	}
}

/** As others see it: nonces are not stored. */
function wire({ edits, files, ...message }: DiscordMessage): object {
	const timestamp = new Date(Number(BigInt(message.id) >> 22n) + EPOCH_MS).toISOString();
	return {
		...message,
		type: message.message_reference ? 19 : 0,
		timestamp,
		edited_timestamp: null,
		mentions: [],
		tts: false,
	};
}

const list = (world: World, channel: string, limit: number): FakeReply => ({
	status: 200,
	body: (world.messages.get(channel) ?? [])
		.toReversed()
		.slice(0, limit)
		.map((message) => wire(message)),
});

function checkContent(content: unknown, filled: boolean): string {
	const text = typeof content === "string" ? content : "";
	if (text.length > CONTENT_MAX) {
		const problem = { code: "BASE_TYPE_MAX_LENGTH", message: `Must be ${CONTENT_MAX} or fewer in length.` };
		throw new Refusal(400, 50035, "Invalid Form Body", { content: { _errors: [problem] } });
	}
	if (text.trim() === "" && !filled) throw new Refusal(400, 50006, "Cannot send an empty message");
	return text.trim();
}

function checkComponents(given: unknown): unknown[] {
	const read = readComponents(given);
	if ("error" in read) throw new Refusal(400, 50035, `Invalid Form Body: ${read.error}`);
	return (given ?? []) as unknown[];
}

function buttonsOf({ components }: DiscordMessage) {
	const read = readComponents(components);
	return "error" in read ? [] : read;
}

/** Resolves when it is confirmed; the note follows later. */
async function press(
	world: World,
	message: DiscordMessage | undefined,
	label: string,
	from = "42",
): Promise<string | undefined> {
	const button = message && buttonsOf(message).find((each) => each.label === label);
	if (!message || !button) throw new Error(`there is no button "${label}"`);
	// A person sees a button only once the bot is connected.
	await world.gateway.connected();
	const id = nextId(world);
	const { token, confirmed, notes } = world.interactions.begin(id);
	world.notes.push(notes);
	world.gateway.dispatch("INTERACTION_CREATE", {
		id,
		token,
		application_id: world.me.id,
		type: 3,
		version: 1,
		channel_id: message.channel_id,
		channel: { id: message.channel_id, type: 1 },
		user: { id: from, username: "ann", discriminator: "0", avatar: null, global_name: null },
		message: wire(message),
		data: { component_type: 2, custom_id: button.custom_id },
	});
	await confirmed;
	return undefined;
}

function checkShape(schema: typeof MessageCreateRequestSchema, body: unknown): void {
	const checked = schema.safeParse(body);
	if (!checked.success) throw new Refusal(400, 50035, `Invalid Form Body: ${checked.error.message}`);
}

function nextId(world: World): string {
	const id = BigInt(Math.floor(world.options.clock.now()) - EPOCH_MS) << 22n;
	world.ids.last = id > world.ids.last ? id : world.ids.last + 1n;
	return String(world.ids.last);
}

function create(world: World, channel: string, request: FakeRequest): object {
	const body = bodyOf(request);
	checkShape(MessageCreateRequestSchema, body);
	const parts = readForm(request).filter(({ filename }) => filename !== undefined);
	if (parts.some(({ data }) => data.length > 10 * 1024 * 1024))
		throw new Refusal(413, 40005, "Request entity too large");
	const content = checkContent(body.content, parts.length > 0);
	const nonce = body.enforce_nonce === true && typeof body.nonce === "string" ? body.nonce : undefined;
	const known = nonce === undefined ? undefined : world.nonces.get(nonce);
	if (known && Date.now() - known.at < NONCE_LIFE_MS) {
		const exists = world.messages.get(channel)?.includes(known.message);
		if (!exists) throw new Refusal(404, 10008, "Unknown Message");
		return { ...wire(known.message), nonce };
	}
	const message: DiscordMessage = {
		id: nextId(world),
		channel_id: channel,
		content,
		author: { ...world.me, bot: true },
		attachments: parts.map(({ filename = "", data, contentType }, index) => ({
			id: String(index),
			filename,
			size: data.length,
			url: `${world.http.url}/cdn/${filename}`,
			content_type: contentType,
		})),
		message_reference: body.message_reference ? (body.message_reference as { message_id: string }) : undefined,
		flags: Number(body.flags ?? 0),
		edits: 0,
		files: parts.map(({ data }) => data),
		components: checkComponents(body.components),
	};
	world.messages.set(channel, [...(world.messages.get(channel) ?? []), message]);
	if (nonce !== undefined) world.nonces.set(nonce, { message, at: Date.now() });
	return { ...wire(message), nonce };
}

function edit(world: World, channel: string, id: string, request: FakeRequest): object {
	checkShape(MessageEditRequestPartialSchema, request.json);
	const message = world.messages.get(channel)?.find((each) => each.id === id);
	if (!message) throw new Refusal(404, 10008, "Unknown Message");
	if (message.author.id !== world.me.id)
		throw new Refusal(403, 50005, "Cannot edit a message authored by another user");
	message.content = checkContent(request.json.content, false);
	if (request.json.components !== undefined) message.components = checkComponents(request.json.components);
	message.edits++;
	return wire(message);
}

function remove(world: World, channel: string, id: string): FakeReply {
	const messages = world.messages.get(channel) ?? [];
	const message = messages.find((each) => each.id === id);
	if (!message) throw new Refusal(404, 10008, "Unknown Message");
	if (message.author.id !== world.me.id) throw new Refusal(403, 50013, "Missing Permissions");
	world.messages.set(
		channel,
		messages.filter((each) => each !== message),
	);
	return { status: 204 };
}

function inject(
	world: World,
	{ text, from = "42", to = "4200", ...extra }: { text: string; from?: string; to?: string; [extra: string]: unknown },
): void {
	const {
		file,
		fileName = "note.txt",
		fileBytes,
		...fields
	} = extra as { file?: Buffer; fileName?: string; fileBytes?: number };
	const path = `/cdn/${world.files.size + 1}/${fileName}`;
	if (file) world.files.set(path, file);
	const attachment = {
		id: "1",
		filename: fileName,
		size: fileBytes ?? file?.length ?? 0,
		url: world.http.url + path,
		content_type: "text/plain",
	};
	const message: DiscordMessage = {
		id: nextId(world),
		channel_id: to,
		content: text,
		author: { id: from, username: "ann" },
		attachments: file ? [attachment] : [],
		flags: 0,
		edits: 0,
		files: [],
		components: [],
	};
	world.messages.set(to, [...(world.messages.get(to) ?? []), message]);
	world.gateway.dispatch("MESSAGE_CREATE", { ...wire(message), ...fields });
}
