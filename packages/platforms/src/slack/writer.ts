/** Messages of a Slack app: every write counts against the workspace's limits and needs the id of a channel. */

import { type CreatedMessage, PlatformError, type SendOptions, type Target } from "@nexus-stream/adapter";
import { createdId } from "@nexus-stream/adapter/platform/json";
import { harmless } from "@nexus-stream/adapter/platform/platform-error";
import type { Asking, Editing } from "@nexus-stream/adapter/platform/session";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { WebClient } from "@slack/web-api";
import { call } from "./api.ts";
import { questionBlocks, sectionsOf } from "./buttons.ts";
import { metadataOf } from "./lookup.ts";
import { createActivity } from "./pace.ts";

const PEOPLE_KEPT = 1000;
const TOOL_CHARS_MAX = 40;

/** Previews of a half-written link would show the wrong page. */
const NO_UNFURL = { unfurl_links: false, unfurl_media: false } as const;

export interface SlackAddress {
	channel: string;
	thread_ts?: string;
}

/** The status line below a thread. */
interface StatusLine {
	typing: boolean;
	/** The running tool, from the typing line. */
	tool: string;
	/** The running tool, from the stream, as a whole sentence. */
	doing: string;
}

interface SlackContent {
	text: string;
	blocks?: ReturnType<typeof sectionsOf>;
}

export class SlackWriter implements Editing, Asking {
	readonly client: WebClient;
	readonly #clock: Clock;
	readonly #activity = createActivity();
	/** Direct channels by the ids of their users. */
	readonly #people = new Map<string, string>();
	readonly #statusLines = new Map<string, StatusLine>();

	constructor(client: WebClient, clock: Clock) {
		this.client = client;
		this.#clock = clock;
	}

	/** Chats that share the workspace's limits, this one included. */
	activeChats(target: Target): number {
		return this.#activity.count(threadKeyOf(target), this.#clock.now());
	}

	async create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		const thread = await this.threadOf(target, options.signal);
		const metadata = metadataOf(options.nonce);
		const { question } = options;
		const buttons = question && { blocks: questionBlocks(text, question) };
		const made = await this.write("chat.postMessage", target, options, () =>
			this.client.chat.postMessage({ ...thread, text, metadata, ...NO_UNFURL, ...buttons }),
		);
		return { messageId: createdId("chat.postMessage", made.ts) };
	}

	edit(target: Target, messageId: string, text: string, options: SendOptions): Promise<void> {
		return this.#update(target, messageId, { text }, options);
	}

	settle(target: Target, messageId: string, text: string, options: SendOptions): Promise<void> {
		return this.#update(target, messageId, { text, blocks: sectionsOf(text) }, options);
	}

	async remove(target: Target, messageId: string, options: SendOptions): Promise<void> {
		const { channel } = await this.threadOf(target, options.signal);
		await this.write("chat.delete", target, options, () => this.client.chat.delete({ channel, ts: messageId }));
	}

	/** Repeats the metadata: an edit without it might drop the nonce. */
	async #update(target: Target, messageId: string, content: SlackContent, options: SendOptions): Promise<void> {
		const { channel } = await this.threadOf(target, options.signal);
		const metadata = metadataOf(options.nonce);
		await this.write("chat.update", target, options, () =>
			// Unlike chat.postMessage, this call looks for links unless `parse` is "none".
			this.client.chat.update({ channel, ts: messageId, metadata, parse: "none", ...content }),
		);
	}

	async showStatus(target: Target, change: Partial<StatusLine>): Promise<void> {
		if (target.thread_id === undefined) return;
		const status = this.#statusAfter(target, change);
		const { channel: channel_id } = await this.threadOf(target, undefined);
		const params = { channel_id, thread_ts: target.thread_id, status };
		await call("assistant.threads.setStatus", undefined, () => this.client.assistant.threads.setStatus(params));
	}

	#statusAfter(target: Target, change: Partial<StatusLine>): string {
		const key = threadKeyOf(target);
		const now = { typing: false, tool: "", doing: "", ...this.#statusLines.get(key), ...change };
		if (now.typing || now.doing !== "") this.#statusLines.set(key, now);
		else this.#statusLines.delete(key);
		const tool = now.tool && `is using ${now.tool.slice(0, TOOL_CHARS_MAX).toWellFormed()}…`;
		return now.doing || tool || (now.typing ? "is thinking…" : "");
	}

	/** A call that counts against the workspace's limits. */
	async write<T>(method: string, target: Target, options: SendOptions, work: () => Promise<T>): Promise<T> {
		this.#activity.touch(threadKeyOf(target), this.#clock.now());
		return await call(method, options.signal, work);
	}

	/** A message to a person goes to the direct channel with them, which Slack opens on demand. */
	async threadOf(target: Target, signal: AbortSignal | undefined): Promise<SlackAddress> {
		const thread = target.thread_id === undefined ? {} : { thread_ts: target.thread_id };
		if (!/^[UW]/.test(target.to)) return { channel: target.to, ...thread };
		const known = this.#people.get(target.to);
		if (known !== undefined) return { channel: known, ...thread };
		const opened = await harmless(
			call("conversations.open", signal, () => this.client.conversations.open({ users: target.to })),
		);
		const channel = opened.channel?.id;
		if (channel === undefined) throw new PlatformError("gone", `conversations.open: no channel for ${target.to}`);
		if (this.#people.size >= PEOPLE_KEPT) this.#people.clear();
		this.#people.set(target.to, channel);
		return { channel, ...thread };
	}
}

const threadKeyOf = ({ to, thread_id }: Target): string => `${to}/${thread_id ?? ""}`;
