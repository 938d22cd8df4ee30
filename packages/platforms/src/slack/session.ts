/** A signed-in Slack app: the Web API's calls, each refusal in the words of all platforms. */

import {
	type CreatedMessage,
	type HealthReport,
	type InboundMessage,
	type Pace,
	PlatformError,
	type Press,
	remembered,
	type SendOptions,
	type Session,
	type Settings,
	type Target,
	type Tools,
	type WebhookAnswer,
	type WebhookRequest,
} from "@nexus-stream/adapter";
import { addressOf, download, keptAt, withFiles } from "@nexus-stream/adapter/platform/network";
import { cannotTell } from "@nexus-stream/adapter/platform/platform-error";
import type { Emit, Listening, OnPress, Webhooks } from "@nexus-stream/adapter/platform/session";
import type { Activity } from "@nexus-stream/adapter/port";
import type { WebClient } from "@slack/web-api";
import { call, createClient } from "./api.ts";
import { readPress } from "./buttons.ts";
import { SlackUploads } from "./files.ts";
import { render } from "./format.ts";
import { openRequest, readEvent, type SlackFile, type SlackIdentity, type Threads } from "./inbound.ts";
import { keptOf, lookUp, type SlackHistoryMessage } from "./lookup.ts";
import { paceOf } from "./pace.ts";
import { listen } from "./socket.ts";
import { SlackStreams } from "./streams.ts";
import { type SlackAddress, SlackWriter } from "./writer.ts";

const PAGE_MESSAGES = 200;
const PAGES_MAX = 10;
/** How far back a message is looked for when nothing says when it can have been written first. */
const LOOK_BACK_MS = 24 * 3_600_000;

type SlackSettings = Settings<"bot_token" | "app_token" | "signing_secret" | "streaming" | "threads" | "api_url">;

export class SlackSession implements Session, Webhooks {
	readonly editing: SlackWriter;
	readonly asking: SlackWriter;
	readonly attaching: SlackUploads;
	readonly streaming: SlackStreams;
	readonly webhooks = this;
	/** Absent without an app token: events come by webhook. */
	readonly listening: Listening | undefined;
	readonly #settings: SlackSettings;
	readonly #apiUrl: string;
	readonly #threads: Threads;
	readonly #client: WebClient;
	readonly #writer: SlackWriter;
	readonly #tools: Tools;
	readonly #me = remembered(async (): Promise<SlackIdentity> => {
		const me = await call("auth.test", undefined, () => this.#client.auth.test());
		return { userId: me.user_id ?? "", botId: me.bot_id };
	});

	constructor(settings: SlackSettings, tools: Tools) {
		this.#settings = settings;
		// The SDK takes the address with a slash at its end.
		this.#apiUrl = `${addressOf("api_url", settings.api_url)}/`;
		this.#threads = oneOf("threads", settings.threads, ["channels", "always", "never"]);
		this.#tools = tools;
		this.#client = createClient(settings.bot_token, this.#apiUrl, tools.log);
		this.#writer = new SlackWriter(this.#client, tools.clock);
		this.editing = this.#writer;
		this.asking = this.#writer;
		this.attaching = new SlackUploads(this.#writer, tools.state);
		const mode = oneOf("streaming", settings.streaming, ["native", "direct", "update"]);
		this.streaming = new SlackStreams(this.#writer, mode, tools.log);
		this.listening = settings.app_token === "" ? undefined : { monitor: (...given) => this.#listen(...given) };
	}

	style(target: Target): "append" | "edit" {
		return this.streaming.style(target);
	}

	pace(target: Target): Pace {
		return paceOf(this.style(target), this.#writer.activeChats(target));
	}

	create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		return this.#writer.create(target, text, options);
	}

	/** The line disappears after two minutes, or with the next message. Slack shows it in threads only. */
	async typing(target: Target, on: boolean, { text = "" }: Activity = {}): Promise<void> {
		await this.#writer.showStatus(target, { typing: on, tool: on ? text : "" });
	}

	async find(target: Target, nonce: string, text: string): Promise<CreatedMessage | undefined> {
		const thread = await this.#writer.threadOf(target, undefined);
		const uploaded = this.attaching.fileOf(nonce);
		if (uploaded !== undefined) return await this.attaching.findShared(uploaded, thread.channel);
		const me = await this.#me();
		const history = await this.#history(thread, target);
		const ours = history.filter(
			({ user, bot_id }) => user === me.userId || (bot_id !== undefined && bot_id === me.botId),
		);
		const judged = this.#tools.sent.judge(nonce, ours.map(keptOf));
		const verdictOn = (message: SlackHistoryMessage) => judged(keptOf(message));
		const ts = lookUp(ours, { nonce, text, streamed: this.style(target) === "append", verdictOn });
		return ts === undefined ? undefined : { messageId: ts };
	}

	async webhook(request: WebhookRequest): Promise<WebhookAnswer> {
		const opened = openRequest(request, this.#settings.signing_secret, this.#tools.clock.now());
		if (!("payload" in opened)) return opened;
		const pressed = this.#readPress(opened.payload);
		if (pressed) return { status: 200, messages: [], presses: [pressed] };
		const message = await this.#read(opened.payload);
		return { status: 200, messages: message ? [message] : [] };
	}

	async health(): Promise<HealthReport> {
		const me = await call("auth.test", undefined, () => this.#client.auth.test());
		const scopes = me.response_metadata?.scopes ?? [];
		const missing = scopes.length > 0 ? ["chat:write"].filter((scope) => !scopes.includes(scope)) : [];
		const { app_token: token, signing_secret: secret } = this.#settings;
		const ways = [token && "Socket Mode", secret && "Events API"].filter(Boolean);
		if (token !== "") {
			await call("apps.connections.open", undefined, () => this.#client.apps.connections.open({ token }));
		}
		const inbound = ways.length > 0 ? ways.join(" and ") : "sends only: set app_token or signing_secret to hear people";
		const problem = missing.length > 0 ? `; add the scope ${missing.join(", ")} and install the app again` : "";
		return { ok: missing.length === 0, detail: `@${me.user} in ${me.team}, ${inbound}${problem}` };
	}

	async #listen(emit: Emit, signal: AbortSignal, press: OnPress): Promise<void> {
		const take = async (payload: unknown) => {
			const message = await this.#read(payload);
			if (message) await emit(message);
		};
		const interact = async (payload: unknown) => {
			const pressed = this.#readPress(payload);
			if (pressed) await press(pressed);
		};
		const { app_token: appToken } = this.#settings;
		await listen({ appToken, apiUrl: this.#apiUrl, take, interact, signal, ...this.#tools });
	}

	#readPress(payload: unknown): Press | undefined {
		const pressed = readPress(payload);
		if (!pressed) return undefined;
		const { choice, place: thread } = pressed;
		const answer = async (note: string | undefined) => {
			if (note === undefined) return;
			await call("chat.postEphemeral", undefined, () =>
				this.#client.chat.postEphemeral({ ...thread, text: render(note) }),
			);
		};
		return { choice, answer };
	}

	async #read(payload: unknown): Promise<InboundMessage | undefined> {
		const inbound = readEvent(payload, await this.#me(), this.#threads);
		if (!inbound) return undefined;
		return await withFiles(inbound, (file, bytesMax) => this.#fetchFile(file, bytesMax));
	}

	async #fetchFile({ url, contentType }: SlackFile, bytesMax: number): Promise<Buffer> {
		const home = this.#apiUrl;
		const headers = { authorization: `Bearer ${this.#settings.bot_token}` };
		const check = (answer: Headers) => refuseSignIn(answer, contentType);
		return await download(keptAt("Slack", url, home, /(?:^|\.)slack\.com$/), { bytesMax, home, headers, check });
	}

	/** Everything in the chat or thread since the message that is being answered. */
	async #history({ channel, thread_ts }: SlackAddress, target: Target): Promise<SlackHistoryMessage[]> {
		const { conversations } = this.#client;
		const oldest = target.reply_to ?? String((this.#tools.clock.now() - LOOK_BACK_MS) / 1000);
		const params = { channel, oldest, limit: PAGE_MESSAGES, include_all_metadata: true };
		const found: SlackHistoryMessage[] = [];
		let cursor = "";
		for (let page = 0; page < PAGES_MAX; page++) {
			const more = { ...params, cursor: cursor || undefined };
			const answer = thread_ts
				? await call("conversations.replies", undefined, () => conversations.replies({ ...more, ts: thread_ts }))
				: await call("conversations.history", undefined, () => conversations.history(more));
			found.push(...((answer.messages ?? []) as SlackHistoryMessage[]));
			cursor = answer.response_metadata?.next_cursor ?? "";
			if (cursor === "") return found;
		}
		throw cannotTell(`The message is not among the ${PAGES_MAX * PAGE_MESSAGES} that were looked at.`);
	}
}

/** Slack answers a download without permission with its sign-in page. */
function refuseSignIn(headers: Headers, contentType: string): void {
	if (contentType.startsWith("text/html") || !headers.get("content-type")?.includes("text/html")) return;
	throw new PlatformError("denied", "Slack asks to sign in. Add the scope files:read and install the app again");
}

function oneOf<Word extends string>(name: string, given: string, words: readonly Word[]): Word {
	const known = words.find((word) => word === given);
	if (known === undefined) throw new PlatformError("invalid", `${name} is "${given}"; allowed: ${words.join(", ")}.`);
	return known;
}
