/** A signed-in Slack app: the Web API's calls, each refusal in the words of all platforms. */

import {
	type Account,
	type Activity,
	addressOf,
	cannotTell,
	createdId,
	download,
	fetchFiles,
	type HealthReport,
	harmless,
	type InboundMessage,
	openSentLog,
	type Pace,
	PlatformError,
	type Press,
	type SendOptions,
	type SentLog,
	type Session,
	type Target,
	type Tools,
	type WebhookAnswer,
	type WebhookRequest,
	type WireAttachment,
} from "@nexus-stream/adapter";
import type { WebClient } from "@slack/web-api";
import { call, createClient, DEFAULT_API_URL } from "./api.ts";
import { questionBlocks, readPress, sectionsOf } from "./buttons.ts";
import { isWithoutStreaming, wordOf } from "./faults.ts";
import { createUploads, type SlackAddress, type Uploads } from "./files.ts";
import { CALL_CHARS_MAX, render, withoutCalls } from "./format.ts";
import { readEvent, type SlackFile, type SlackIdentity, type SlackInboundMessage, type Threads } from "./inbound.ts";
import { keptOf, lookUp, metadataOf, type SlackHistoryMessage } from "./lookup.ts";
import { createActivity, paceOf } from "./pace.ts";
import { listen } from "./socket.ts";
import { createStatusLines, type Shown, threadKeyOf } from "./status.ts";
import { openRequest } from "./webhook.ts";

/** More than one call takes is written as an ordinary message. */
const STREAM_CHARS_MAX = 12_000;
const PAGE_MESSAGES = 200;
const PAGES_MAX = 10;
/** How far back a message is looked for when nothing says when it can have been written first. */
const LOOK_BACK_MS = 24 * 3_600_000;
const PEOPLE_KEPT = 1000;

/** A preview of a link that is half written shows the wrong page. */
const NO_UNFURL = { unfurl_links: false, unfurl_media: false } as const;

export class SlackSession implements Session {
	readonly monitor?: NonNullable<Session["monitor"]>;
	private readonly botToken: string;
	private readonly appToken: string;
	private readonly signingSecret: string;
	private readonly apiUrl: string;
	private readonly threads: Threads;
	private readonly client: WebClient;
	private readonly uploads: Uploads;
	private readonly tools: Tools;
	private readonly sent: SentLog;
	private readonly activity = createActivity();
	/** Direct channels of people, by their user ids. */
	private readonly people = new Map<string, string>();
	/** Streams that Slack did not give: ordinary messages, with what they say. */
	private readonly imitated = new Map<string, string>();
	/** Streams that are open, with the end of what they say. */
	private readonly tails = new Map<string, string>();
	private readonly statusLines = createStatusLines();
	private streaming: "native" | "direct" | "update";
	private myself: Promise<SlackIdentity> | undefined;

	constructor({ settings }: Account, tools: Tools) {
		this.botToken = settings.bot_token ?? "";
		this.appToken = settings.app_token ?? "";
		this.signingSecret = settings.signing_secret ?? "";
		// The SDK takes it with its slash.
		this.apiUrl = `${addressOf("api_url", settings.api_url, DEFAULT_API_URL)}/`;
		this.threads = oneOf("threads", settings.threads, ["channels", "always", "never"]);
		this.streaming = oneOf("streaming", settings.streaming, ["native", "direct", "update"]);
		this.tools = tools;
		this.sent = openSentLog(tools);
		this.client = createClient(this.botToken, this.apiUrl, tools.log);
		this.uploads = createUploads(this.client, tools.state);
		// Without it events come by webhook.
		if (this.appToken !== "") this.monitor = (emit, signal, press) => this.listen(emit, signal, press);
	}

	/** A stream answers in a thread, and in a channel it is for one person. */
	style(target: Target): "append" | "edit" {
		if (this.streaming === "update" || target.thread_id === undefined) return "edit";
		if (isDirect(target)) return "append";
		const known = typeof target.user_id === "string" && typeof target.team_id === "string";
		return known && this.streaming === "native" ? "append" : "edit";
	}

	pace(target: Target): Pace {
		return paceOf(this.style(target), this.activity.count(threadKeyOf(target), this.tools.clock.now()));
	}

	async create(target: Target, text: string, options: SendOptions): Promise<{ messageId: string }> {
		const thread = await this.threadOf(target, options.signal);
		const metadata = metadataOf(options.nonce);
		const { question } = options;
		const buttons = question && { blocks: questionBlocks(text, question) };
		return await this.sent.create(options.nonce, async () => {
			const made = await this.write("chat.postMessage", target, options, () =>
				this.client.chat.postMessage({ ...thread, text, metadata, ...NO_UNFURL, ...buttons }),
			);
			return { messageId: createdId("chat.postMessage", made.ts) };
		});
	}

	/** An edit without metadata might take the nonce away. */
	async edit(target: Target, messageId: string, text: string, options: SendOptions): Promise<void> {
		await this.update(target, messageId, text, options);
	}

	async settle(target: Target, messageId: string, text: string, options: SendOptions): Promise<void> {
		await this.update(target, messageId, text, options, { blocks: sectionsOf(text) });
	}

	private async update(
		target: Target,
		messageId: string,
		text: string,
		options: SendOptions,
		more: { blocks?: ReturnType<typeof sectionsOf> } = {},
	): Promise<void> {
		const { channel } = await this.threadOf(target, options.signal);
		const metadata = metadataOf(options.nonce);
		await this.write("chat.update", target, options, () =>
			// Unlike chat.postMessage, this call looks for links by itself.
			this.client.chat.update({ channel, ts: messageId, text, metadata, parse: "none", ...more }),
		);
	}

	async remove(target: Target, messageId: string, options: SendOptions): Promise<void> {
		const { channel } = await this.threadOf(target, options.signal);
		await this.write("chat.delete", target, options, () => this.client.chat.delete({ channel, ts: messageId }));
	}

	async start(target: Target, markdown: string, options: SendOptions): Promise<{ messageId: string }> {
		if (markdown.length > STREAM_CHARS_MAX) return await this.imitate(target, markdown, options);
		const { channel } = await this.threadOf(target, options.signal);
		const recipient = isDirect(target)
			? {}
			: { recipient_user_id: String(target.user_id), recipient_team_id: String(target.team_id) };
		const markdown_text = withoutCalls(markdown, "");
		const params = { channel, thread_ts: target.thread_id ?? "", markdown_text, ...recipient };
		try {
			return await this.sent.create(options.nonce, async () => {
				const made = await this.write("chat.startStream", target, options, () =>
					this.client.chat.startStream(params),
				).catch((cause: unknown) => {
					// A gateway that knows no such method has passed nothing on: the note says that nothing left.
					if (!isWithoutStreaming(cause)) throw cause;
					throw new PlatformError("invalid", String(cause), { cause: (cause as PlatformError).cause });
				});
				const messageId = createdId("chat.startStream", made.ts);
				this.tails.set(messageId, markdown_text.slice(-CALL_CHARS_MAX));
				return { messageId };
			});
		} catch (cause) {
			if (!isWithoutStreaming(cause)) throw cause;
			this.tools.log.warn({ error: String(cause) }, "no native streaming here; messages are edited instead");
			this.streaming = isDirect(target) ? "update" : "direct";
			return await this.imitate(target, markdown, options);
		}
	}

	async append(target: Target, messageId: string, markdown: string, options: SendOptions): Promise<void> {
		const before = this.imitated.get(messageId);
		if (before !== undefined) {
			await this.edit(target, messageId, render(before + markdown), options);
			this.imitated.set(messageId, before + markdown);
			return;
		}
		const { channel } = await this.threadOf(target, options.signal);
		const tail = this.tails.get(messageId) ?? "";
		const text = withoutCalls(markdown, tail);
		for (let at = 0; at < text.length; at += STREAM_CHARS_MAX) {
			const markdown_text = text.slice(at, at + STREAM_CHARS_MAX);
			await this.write("chat.appendStream", target, options, () =>
				this.client.chat.appendStream({ channel, ts: messageId, markdown_text }),
			);
		}
		this.tails.set(messageId, (tail + text).slice(-CALL_CHARS_MAX));
	}

	async stop(target: Target, messageId: string, options: SendOptions): Promise<void> {
		if (this.imitated.delete(messageId)) return;
		this.tails.delete(messageId);
		const { channel } = await this.threadOf(target, options.signal);
		const metadata = metadataOf(options.nonce);
		try {
			await this.write("chat.stopStream", target, options, () =>
				this.client.chat.stopStream({ channel, ts: messageId, metadata }),
			);
		} catch (cause) {
			// Slack closes streams that are silent for long.
			if (wordOf(cause) !== "message_not_in_streaming_state") throw cause;
		}
	}

	/** It ends by itself after two minutes, or with the next message. Slack shows it in threads only. */
	async typing(target: Target, on: boolean, { text = "" }: Activity = {}): Promise<void> {
		await this.showStatus(target, { typing: on, tool: on ? text : "" });
	}

	/** A stream's text cannot be taken back: which tool runs stands where typing does. */
	async status(target: Target, doing: string): Promise<void> {
		await this.showStatus(target, { doing });
	}

	private async showStatus(target: Target, change: Partial<Shown>): Promise<void> {
		if (target.thread_id === undefined) return;
		const status = this.statusLines.change(target, change);
		const { channel: channel_id } = await this.threadOf(target, undefined);
		const params = { channel_id, thread_ts: target.thread_id, status };
		await call("assistant.threads.setStatus", undefined, () => this.client.assistant.threads.setStatus(params));
	}

	async attach(target: Target, attachment: WireAttachment, options: SendOptions): Promise<{ messageId: string }> {
		return await this.uploads.send(await this.threadOf(target, options.signal), attachment, options);
	}

	async find(target: Target, nonce: string, text: string): Promise<{ messageId: string } | undefined> {
		const thread = await this.threadOf(target, undefined);
		const uploaded = this.uploads.fileOf(nonce);
		if (uploaded !== undefined) return await this.uploads.find(uploaded, thread.channel);
		return await this.sent.find(nonce, async () => {
			const me = await this.me();
			const history = await this.history(thread, target);
			const ours = history.filter(
				({ user, bot_id }) => user === me.userId || (bot_id !== undefined && bot_id === me.botId),
			);
			const judged = this.sent.judge(nonce, ours.map(keptOf));
			const verdictOn = (message: SlackHistoryMessage) => judged(keptOf(message));
			const ts = lookUp(ours, { nonce, text, streamed: this.style(target) === "append", verdictOn });
			return ts === undefined ? undefined : { messageId: ts };
		});
	}

	async webhook(request: WebhookRequest): Promise<WebhookAnswer> {
		const opened = openRequest(request, this.signingSecret, this.tools.clock.now());
		if (!("payload" in opened)) return opened;
		const pressed = this.readPress(opened.payload);
		if (pressed) return { status: 200, messages: [], presses: [pressed] };
		const message = await this.read(opened.payload);
		return { status: 200, messages: message ? [message] : [] };
	}

	async health(): Promise<HealthReport> {
		const me = await call("auth.test", undefined, () => this.client.auth.test());
		const scopes = me.response_metadata?.scopes ?? [];
		const missing = scopes.length > 0 ? ["chat:write"].filter((scope) => !scopes.includes(scope)) : [];
		const ways = [this.appToken && "Socket Mode", this.signingSecret && "Events API"].filter(Boolean);
		if (this.appToken !== "") {
			const token = this.appToken;
			await call("apps.connections.open", undefined, () => this.client.apps.connections.open({ token }));
		}
		const inbound = ways.length > 0 ? ways.join(" and ") : "sends only: set app_token or signing_secret to hear people";
		const problem = missing.length > 0 ? `; add the scope ${missing.join(", ")} and install the app again` : "";
		return { ok: missing.length === 0, detail: `@${me.user} in ${me.team}, ${inbound}${problem}` };
	}

	private async listen(
		emit: (message: InboundMessage) => Promise<void>,
		signal: AbortSignal,
		press?: (press: Press) => Promise<void>,
	): Promise<void> {
		const { appToken, apiUrl, tools } = this;
		const take = async (payload: unknown) => {
			const message = await this.read(payload);
			if (message) await emit(message);
		};
		const interact = async (payload: unknown) => {
			const pressed = this.readPress(payload);
			if (pressed) await press?.(pressed);
		};
		const { clock, log, listening } = tools;
		await listen({ appToken, apiUrl, take, interact, signal, clock, log, listening });
	}

	private readPress(payload: unknown): Press | undefined {
		const pressed = readPress(payload);
		if (!pressed) return undefined;
		const { choice, place: thread } = pressed;
		const answer = async (note: string | undefined) => {
			if (note === undefined) return;
			await call("chat.postEphemeral", undefined, () =>
				this.client.chat.postEphemeral({ ...thread, text: render(note) }),
			);
		};
		return { choice, answer };
	}

	private me(): Promise<SlackIdentity> {
		this.myself ??= call("auth.test", undefined, () => this.client.auth.test()).then((me) => ({
			userId: me.user_id ?? "",
			botId: me.bot_id,
		}));
		// A failure is not remembered.
		this.myself.catch(() => {
			this.myself = undefined;
		});
		return this.myself;
	}

	private async read(payload: unknown): Promise<InboundMessage | undefined> {
		const inbound: SlackInboundMessage | undefined = readEvent(payload, await this.me(), this.threads);
		if (!inbound) return undefined;
		const { message, files } = inbound;
		const { attachments, notes } = await fetchFiles(files, (file, bytesMax) => this.fetchFile(file, bytesMax));
		const text = [message.text, ...notes].filter((each) => each !== "").join("\n");
		return { ...message, text, ...(attachments.length > 0 ? { attachments } : {}) };
	}

	/** Our token goes to Slack and nowhere else: a message may name files that lie elsewhere. */
	private async fetchFile({ url, contentType }: SlackFile, bytesMax: number): Promise<Buffer> {
		const address = URL.parse(url);
		const home = new URL(this.apiUrl);
		const slack = address?.protocol === "https:" && /(?:^|\.)slack\.com$/.test(address.hostname);
		if (!address || (!slack && address.origin !== home.origin))
			throw new PlatformError("gone", "it is not kept at Slack");
		const headers = { authorization: `Bearer ${this.botToken}` };
		return await download(address, {
			bytesMax,
			home: this.apiUrl,
			headers,
			check: (answer) => refuseSignIn(answer, contentType),
		});
	}

	private async imitate(target: Target, markdown: string, options: SendOptions): Promise<{ messageId: string }> {
		const made = await this.create(target, render(markdown), options);
		this.imitated.set(made.messageId, markdown);
		return made;
	}

	/** Everything in the chat or thread since the message that is being answered. */
	private async history(thread: SlackAddress, target: Target): Promise<SlackHistoryMessage[]> {
		const oldest = target.reply_to ?? String((this.tools.clock.now() - LOOK_BACK_MS) / 1000);
		const params = { channel: thread.channel, oldest, limit: PAGE_MESSAGES, include_all_metadata: true };
		const found: SlackHistoryMessage[] = [];
		let cursor = "";
		for (let page = 0; page < PAGES_MAX; page++) {
			const more = cursor === "" ? {} : { cursor };
			const answer = thread.thread_ts
				? await call("conversations.replies", undefined, () =>
						this.client.conversations.replies({ ...params, ...more, ts: thread.thread_ts ?? "" }),
					)
				: await call("conversations.history", undefined, () =>
						this.client.conversations.history({ ...params, ...more }),
					);
			found.push(...((answer.messages ?? []) as SlackHistoryMessage[]));
			cursor = answer.response_metadata?.next_cursor ?? "";
			if (cursor === "") return found;
		}
		const limit = PAGES_MAX * PAGE_MESSAGES;
		throw cannotTell(`The message is not among the ${limit} that were looked at.`);
	}

	/** A call that counts against the workspace's limits. */
	private async write<T>(method: string, target: Target, options: SendOptions, work: () => Promise<T>): Promise<T> {
		this.activity.touch(threadKeyOf(target), this.tools.clock.now());
		return await call(method, options.signal, work);
	}

	/** A person is written to in the direct channel with them. */
	private async threadOf(target: Target, signal: AbortSignal | undefined): Promise<SlackAddress> {
		const thread = target.thread_id === undefined ? {} : { thread_ts: target.thread_id };
		if (!/^[UW]/.test(target.to)) return { channel: target.to, ...thread };
		const known = this.people.get(target.to);
		if (known !== undefined) return { channel: known, ...thread };
		const opened = await harmless(
			call("conversations.open", signal, () => this.client.conversations.open({ users: target.to })),
		);
		const channel = opened.channel?.id;
		if (channel === undefined) throw new PlatformError("gone", `conversations.open: no channel for ${target.to}`);
		if (this.people.size >= PEOPLE_KEPT) this.people.clear();
		this.people.set(target.to, channel);
		return { channel, ...thread };
	}
}

/** Who may not read a file gets Slack's page for signing in, as if that were the file. */
function refuseSignIn(headers: Headers, contentType: string): void {
	if (contentType.startsWith("text/html") || !headers.get("content-type")?.includes("text/html")) return;
	throw new PlatformError("denied", "Slack asks to sign in. Add the scope files:read and install the app again");
}

/** Direct channels have their own kind of id. */
const isDirect = (target: Target): boolean => target.direct ?? /^[DUW]/.test(target.to);

function oneOf<Word extends string>(name: string, given: string | undefined, words: readonly [Word, ...Word[]]): Word {
	if (!given) return words[0];
	const known = words.find((word) => word === given);
	if (known === undefined) throw new PlatformError("invalid", `${name} is "${given}"; allowed: ${words.join(", ")}.`);
	return known;
}
