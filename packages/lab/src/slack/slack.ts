/** A Slack workspace with one app: Web API with its tiers, Socket Mode, signed events, files. */

import { createHmac } from "node:crypto";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Fake, FakeOptions } from "../fake.ts";
import { Buckets, type FakeReply, type FakeRequest, type Rate, serveFake } from "../http.ts";
import { methodsOf, type SlackArgs, SlackRefusal } from "./methods.ts";
import { createSockets } from "./socket.ts";
import { BOT, readable, type SlackMessage, SlackStore } from "./store.ts";

export interface SlackFakeOptions extends FakeOptions {
	/** `off`: no call is too many. */
	rate?: "documented" | "off";
	streaming?: boolean;
	/** Channels that the app is not a member of. */
	foreign?: readonly string[];
	/** Whether the app has the scope for reading files. */
	filesRead?: boolean;
	/** How long an event waits to be confirmed before it comes again. */
	ackMs?: number;
}

/** Every event comes once, however long it takes to be confirmed. */
export const PATIENT: SlackFakeOptions = { ackMs: 60_000 };

export interface SlackFake extends Fake {
	raw(to: string): SlackMessage[];
	/** An event callback as the Events API would send it. */
	event(message: SlackInbound): object;
	buttons: NonNullable<Fake["buttons"]>;
	press: NonNullable<Fake["press"]>;
	pressed(to: string, nth: number, label: string, from?: string): object;
	/** A request as Slack signs it. `form`: as interactivity sends it. */
	signed(
		payload: object,
		options?: { at?: number; secret?: string; form?: boolean },
	): { headers: Record<string, string>; body: Buffer };
	/** Slack ends streams that are silent for long. */
	expireStreams(): void;
	/** Ends the WebSocket connections, as Slack does every few hours. */
	dropSockets(): void;
	inject(message: SlackInbound): Promise<void>;
}

export interface SlackInbound {
	text: string;
	from?: string;
	to?: string;
	thread_ts?: string;
	/** Sent in answer to this event type: `message`, or `app_mention` in channels. */
	type?: string;
	ts?: string;
	files?: { name: string; contentType: string; data: Buffer }[];
	[extra: string]: unknown;
}

/** More than so many at once, then one every so many milliseconds; the tiers of Slack's documents. */
const TIERS: Readonly<Record<string, Rate>> = {
	"chat.postMessage": [10, 1000],
	"chat.update": [50, 1200],
	"chat.startStream": [20, 3000],
	"chat.appendStream": [100, 600],
	"chat.stopStream": [20, 3000],
	"conversations.history": [50, 1200],
	"conversations.replies": [50, 1200],
};

const SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5";

class SlackApi {
	readonly store: SlackStore;
	readonly settings: Record<string, string> = {
		bot_token: "xoxb-1",
		app_token: "xapp-1",
		signing_secret: SIGNING_SECRET,
	};
	/** Set once the addresses are known. */
	methods: ReturnType<typeof methodsOf> = {};
	readonly #options: SlackFakeOptions;
	readonly #buckets = new Buckets();

	constructor(options: SlackFakeOptions, clock: Clock) {
		this.#options = options;
		this.store = new SlackStore(clock);
	}

	handle(request: FakeRequest): FakeReply {
		const [, kind, id = ""] = /^\/(upload|files)\/(\w+)/.exec(request.path) ?? [];
		if (kind) return kind === "upload" ? this.#takeBytes(request, id) : this.#giveBytes(request, id);
		const method = methodOf(request);
		const args = argsOf(request);
		const token = method === "apps.connections.open" ? this.settings.app_token : this.settings.bot_token;
		const given = request.headers.authorization?.replace("Bearer ", "") ?? args.token;
		if (given !== token) return refuse("invalid_auth");
		const late = this.#waitMs(method, args, request.at);
		if (late > 0) return tooMany(late);
		const work = this.methods[method];
		if (!work) return refuse("unknown_method");
		try {
			return { status: 200, headers: { "x-oauth-scopes": "chat:write,files:read" }, body: { ok: true, ...work(args) } };
		} catch (cause) {
			if (cause instanceof SlackRefusal) return refuse(cause.message);
			throw cause;
		}
	}

	/** 0 = allowed. One message a second is counted by channel. */
	#waitMs(method: string, args: SlackArgs, now: number): number {
		const tier = this.#options.rate === "off" ? undefined : TIERS[method];
		const key = method === "chat.postMessage" ? `${method} ${args.channel}` : method;
		return tier ? this.#buckets.take(key, tier, now) : 0;
	}

	#takeBytes({ body }: FakeRequest, id: string): FakeReply {
		const file = this.store.files.get(id);
		if (!file || body.length !== file.size) return { status: 400, body: "wrong length" };
		file.data = body;
		return { status: 200, body: "OK" };
	}

	#giveBytes({ headers }: FakeRequest, id: string): FakeReply {
		const data = this.store.files.get(id)?.data;
		const allowed = headers.authorization === `Bearer ${this.settings.bot_token}` && this.#options.filesRead !== false;
		// Slack does not refuse: it redirects to its sign-in page.
		if (!allowed) {
			const page = "<!DOCTYPE html><html><title>Slack</title></html>";
			return { status: 200, headers: { "content-type": "text/html; charset=utf-8" }, body: page };
		}
		return data ? { status: 200, body: data } : { status: 404, body: "not found" };
	}
}

export async function createSlackFake(options: SlackFakeOptions = {}): Promise<SlackFake> {
	const { clock = systemClock } = options;
	const api = new SlackApi(options, clock);
	const { store, settings } = api;
	const http = await serveFake({
		clock,
		name: nameOf,
		handle: (request) => api.handle(request),
		refuse: (fault) =>
			fault.kind === "429" ? tooMany(fault.ms ?? 1000) : { status: 503, body: "upstream connect error" },
	});
	const sockets = createSockets(http.server, `${http.url.replace("http", "ws")}/link`, options.ackMs);
	api.methods = methodsOf({ store, url: http.url, socketUrl: sockets.url, ...options });
	settings.api_url = `${http.url}/api/`;
	const ours = (to: string) => store.in(to).filter(({ user }) => user === BOT.user);
	const pressed = (to: string, nth: number, label: string, from?: string) => pressOf(store, ours(to)[nth], label, from);
	const event = (message: SlackInbound): object => eventOf(store, http.url, message);
	return {
		...http,
		url: settings.api_url,
		settings,
		visible: (to) => ours(to).map(readable),
		raw: (to) => store.in(to),
		event,
		inject: (message) => sockets.deliver(event(message)),
		signed: (payload, { at = clock.now(), secret = SIGNING_SECRET, form = false } = {}) =>
			sign(payload, at, secret, form),
		buttons: (to) => ours(to).map(({ buttons }) => buttons.map(({ label }) => label)),
		pressed,
		async press(to, nth, label, from) {
			await sockets.deliver(pressed(to, nth, label, from), "interactive");
			return undefined;
		},
		expireStreams() {
			for (const message of store.messages) message.streaming = false;
		},
		dropSockets: sockets.drop,
		async close() {
			sockets.close();
			await http.close();
		},
	};
}

function nameOf(request: FakeRequest): { name: string; to: string; body: unknown } | undefined {
	if (request.path.startsWith("/upload/")) return { name: "upload", to: "", body: request.body.length };
	const name = methodOf(request);
	const body = argsOf(request);
	return name === "" ? undefined : { name, to: body.channel ?? body.channel_id ?? "", body };
}

function pressOf(store: SlackStore, message: SlackMessage | undefined, label: string, from = "U1"): object {
	const button = message?.buttons.find((each) => each.label === label);
	if (!message || !button) throw new Error(`there is no button "${label}"`);
	const { ts, channel, thread_ts, text } = message;
	return {
		type: "block_actions",
		user: { id: from, name: "ann", team_id: BOT.team },
		channel: { id: channel },
		message: { ts, text, thread_ts },
		actions: [{ type: "button", action_id: button.action_id, value: button.value, action_ts: store.stamp() }],
	};
}

const methodOf = ({ path }: FakeRequest): string => /^\/api\/([\w.]+)$/.exec(path)?.[1] ?? "";
const refuse = (error: string): FakeReply => ({ status: 200, body: { ok: false, error } });

const tooMany = (ms: number): FakeReply => ({
	status: 429,
	headers: { "retry-after": String(Math.max(0, Math.ceil(ms / 1000))) },
	body: { ok: false, error: "ratelimited" },
});

function argsOf({ headers, body, json }: FakeRequest): SlackArgs {
	if (headers["content-type"]?.includes("json")) return json as SlackArgs;
	return Object.fromEntries(new URLSearchParams(body.toString("utf8")));
}

function eventOf(store: SlackStore, url: string, message: SlackInbound): object {
	const { text, from = "U1", to = "D1", thread_ts, type = "message", ts, files = [], ...extra } = message;
	const kept = files.map(({ name, contentType, data }) => store.addFile(name, data.length, contentType, data));
	const known = ts === undefined ? undefined : store.get(to, ts);
	const thread = thread_ts === undefined ? {} : { thread_ts };
	const stored = known ?? store.add({ channel: to, text, user: from, files: kept, ...thread });
	const channel_type = to.startsWith("D") ? "im" : "channel";
	const named = stored.files.map(({ id, name, mimetype, size }) => ({
		id,
		name,
		mimetype,
		size,
		url_private_download: `${url}/files/${id}`,
	}));
	return {
		type: "event_callback",
		team_id: BOT.team,
		event_id: `Ev${stored.ts}`,
		event: {
			type,
			channel: to,
			user: from,
			text,
			ts: stored.ts,
			team: BOT.team,
			...thread,
			channel_type: type === "message" ? channel_type : undefined,
			...(named.length > 0 ? { subtype: "file_share", files: named } : {}),
			...extra,
		},
	};
}

function sign(payload: object, at: number, secret: string, form: boolean) {
	const json = JSON.stringify(payload);
	const body = Buffer.from(form ? new URLSearchParams({ payload: json }).toString() : json);
	const stamp = String(Math.floor(at / 1000));
	const signature = createHmac("sha256", secret)
		.update(`v0:${stamp}:${body.toString("utf8")}`)
		.digest("hex");
	const headers = {
		"content-type": form ? "application/x-www-form-urlencoded" : "application/json",
		"x-slack-request-timestamp": stamp,
		"x-slack-signature": `v0=${signature}`,
	};
	return { headers, body };
}
