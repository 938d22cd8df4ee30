/** Discord's REST API and gateway: requests checked by the official schemas, buckets with their headers, nonces, sessions that resume. */

import { systemClock } from "@nexus-stream/protocol/clock";
import type { Fake } from "../fake.ts";
import { Chats, type FakeReply, type FakeRequest, ok, serveFake } from "../http.ts";
import { createInteractions } from "./buttons.ts";
import { FakeGateway } from "./gateway.ts";
import {
	bodyOf,
	buttonsOf,
	create,
	type DiscordFakeOptions,
	type DiscordMessage,
	type DiscordRate,
	DiscordRefusal,
	type DiscordWorld,
	edit,
	list,
	nextId,
	remove,
	wire,
} from "./messages.ts";

export const DISCORD_TOKEN = "fake-token.for.discord";

export interface DiscordFake extends Fake {
	buttons: NonNullable<Fake["buttons"]>;
	press: NonNullable<Fake["press"]>;
	/** The note that the person who pressed reads, once it has come. */
	notes(press: number): readonly string[];
	readonly token: string;
	readonly me: { id: string; username: string };
	readonly gateway: FakeGateway;
	raw(to: string): DiscordMessage[];
	remove(to: string, messageId: string): void;
}

export async function createDiscordFake(options: DiscordFakeOptions = {}): Promise<DiscordFake> {
	const world = {
		me: { id: "900000000000000001", username: "nexus" },
		interactions: createInteractions(),
		notes: [],
		chats: new Chats(),
		files: new Map(),
		nonces: new Map(),
		windows: new Map(),
		options: { createRate: [5, 5000], editRate: [5, 1000], messageContent: true, clock: systemClock, ...options },
		ids: { last: 0n },
	} as unknown as DiscordWorld;
	world.http = await serveFake({
		clock: world.options.clock,
		name: nameOf,
		handle: (request) => handle(world, request),
		refuse: ({ kind, ms = 1000 }) =>
			kind === "429" ? tooMany(ms / 1000, true) : { status: 503, body: "upstream connect error" },
	});
	world.gateway = new FakeGateway(world.http.server, { token: DISCORD_TOKEN, me: world.me, ...world.options });
	const of = (to: string) => world.chats.of(to).filter(({ author }) => author.id === world.me.id);
	return {
		...world.http,
		url: `${world.http.url}/api`,
		settings: { token: DISCORD_TOKEN, api_url: `${world.http.url}/api` },
		token: DISCORD_TOKEN,
		me: world.me,
		gateway: world.gateway,
		async close() {
			await world.gateway.close();
			await world.http.close();
		},
		raw: of,
		visible: (to) => of(to).map(({ content }) => content),
		remove: (to, messageId) => void world.chats.remove(to, ({ id }) => id === messageId),
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

function tooMany(seconds: number, global: boolean): FakeReply {
	const body = { message: "You are being rate limited.", retry_after: seconds, global };
	const scope: Record<string, string> = global
		? { "x-ratelimit-global": "true", "x-ratelimit-scope": "global" }
		: { "x-ratelimit-scope": "user" };
	return { status: 429, headers: { "retry-after": String(Math.ceil(seconds)), ...scope }, body };
}

function handle(world: DiscordWorld, request: FakeRequest): FakeReply {
	const file = world.files.get(request.path);
	if (file) return { status: 200, body: file };
	const answered = world.interactions.handle(request);
	if (answered) return answered;
	if (request.headers.authorization !== `Bot ${DISCORD_TOKEN}`) throw new DiscordRefusal(401, 0, "401: Unauthorized");
	return route(world, request);
}

function route(world: DiscordWorld, request: FakeRequest): FakeReply {
	const { method, path } = request;
	const [, channel = "", what, messageId] = CHANNEL.exec(path) ?? [];
	if (path === "/api/v10/gateway/bot") {
		const limit = { total: 1000, remaining: 999, reset_after: 14_400_000, max_concurrency: 1 };
		return ok({ url: world.http.url.replace("http", "ws"), shards: 1, session_start_limit: limit });
	}
	if (path === "/api/v10/users/@me") return ok(world.me);
	if (path === "/api/v10/users/@me/channels") return ok({ id: `7${String(request.json.recipient_id)}`, type: 1 });
	if (!what) throw new DiscordRefusal(404, 0, "404: Not Found");
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
	if (channel === "404") throw new DiscordRefusal(404, 10003, "Unknown Channel");
	if (channel === "403") throw new DiscordRefusal(403, 50001, "Missing Access");
	if (channel === "160002") {
		throw new DiscordRefusal(400, 160002, "Cannot reply without permission to read message history");
	}
	if (channel === "50013") throw new DiscordRefusal(403, 50013, "Missing Permissions");
}

/** A bucket: so many calls in a window that begins with the first. */
function limited(
	world: DiscordWorld,
	request: FakeRequest,
	[limit, windowMs]: DiscordRate,
	work: () => object,
): FakeReply {
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
		if (cause instanceof DiscordRefusal) return { ...cause.reply, headers };
		throw cause;
	}
}

/** Resolves when it is confirmed; the note follows later. */
async function press(
	world: DiscordWorld,
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

function inject(
	world: DiscordWorld,
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
	world.chats.add(to, message);
	world.gateway.dispatch("MESSAGE_CREATE", { ...wire(message), ...fields });
}
