/** Native streams: messages that grow in a thread by appending. Where Slack refuses one, an ordinary message is edited instead. */

import type { CreatedMessage, SendOptions, Target } from "@nexus-stream/adapter";
import { createdId } from "@nexus-stream/adapter/platform/json";
import type { Streaming } from "@nexus-stream/adapter/platform/session";
import type { Log } from "@nexus-stream/protocol/log";
import { isWithoutStreaming, wordOf } from "./faults.ts";
import { CALL_CHARS_MAX, render, withoutCalls } from "./format.ts";
import { metadataOf } from "./lookup.ts";
import type { SlackWriter } from "./writer.ts";

/** One call takes no more; a longer text becomes an ordinary message. */
const STREAM_CHARS_MAX = 12_000;

/** Where streams are used: in threads, in threads of direct messages only, or nowhere. */
export type StreamingMode = "native" | "direct" | "update";

export class SlackStreams implements Streaming {
	readonly #writer: SlackWriter;
	readonly #log: Log;
	#mode: StreamingMode;
	/** Text of the ordinary messages that stand for a stream, by message id. */
	readonly #imitated = new Map<string, string>();
	/** The end of the text of each open stream, by message id. */
	readonly #tails = new Map<string, string>();

	constructor(writer: SlackWriter, mode: StreamingMode, log: Log) {
		this.#writer = writer;
		this.#mode = mode;
		this.#log = log;
	}

	/** A stream needs a thread, and in a channel it has one recipient. */
	style(target: Target): "append" | "edit" {
		if (this.#mode === "update" || target.thread_id === undefined) return "edit";
		if (isDirect(target)) return "append";
		const hasRecipient = typeof target.user_id === "string" && typeof target.team_id === "string";
		return hasRecipient && this.#mode === "native" ? "append" : "edit";
	}

	async start(target: Target, markdown: string, options: SendOptions): Promise<CreatedMessage> {
		if (markdown.length > STREAM_CHARS_MAX) return await this.#imitate(target, markdown, options);
		const { channel } = await this.#writer.threadOf(target, options.signal);
		const recipient = isDirect(target)
			? {}
			: { recipient_user_id: String(target.user_id), recipient_team_id: String(target.team_id) };
		const markdown_text = withoutCalls(markdown, "");
		const params = { channel, thread_ts: target.thread_id ?? "", markdown_text, ...recipient };
		try {
			const made = await this.#writer.write("chat.startStream", target, options, () =>
				this.#writer.client.chat.startStream(params),
			);
			const messageId = createdId("chat.startStream", made.ts);
			this.#tails.set(messageId, markdown_text.slice(-CALL_CHARS_MAX));
			return { messageId };
		} catch (cause) {
			if (!isWithoutStreaming(cause)) throw cause;
			this.#log.warn({ error: String(cause) }, "Slack refuses native streams here; messages are edited instead");
			this.#mode = isDirect(target) ? "update" : "direct";
			return await this.#imitate(target, markdown, options);
		}
	}

	async append(target: Target, messageId: string, markdown: string, options: SendOptions): Promise<void> {
		const before = this.#imitated.get(messageId);
		if (before !== undefined) {
			await this.#writer.edit(target, messageId, render(before + markdown), options);
			this.#imitated.set(messageId, before + markdown);
			return;
		}
		const { channel } = await this.#writer.threadOf(target, options.signal);
		const tail = this.#tails.get(messageId) ?? "";
		const text = withoutCalls(markdown, tail);
		for (let at = 0; at < text.length; at += STREAM_CHARS_MAX) {
			const markdown_text = text.slice(at, at + STREAM_CHARS_MAX);
			await this.#writer.write("chat.appendStream", target, options, () =>
				this.#writer.client.chat.appendStream({ channel, ts: messageId, markdown_text }),
			);
		}
		this.#tails.set(messageId, (tail + text).slice(-CALL_CHARS_MAX));
	}

	async stop(target: Target, messageId: string, options: SendOptions): Promise<void> {
		if (this.#imitated.delete(messageId)) return;
		this.#tails.delete(messageId);
		const { channel } = await this.#writer.threadOf(target, options.signal);
		const metadata = metadataOf(options.nonce);
		try {
			await this.#writer.write("chat.stopStream", target, options, () =>
				this.#writer.client.chat.stopStream({ channel, ts: messageId, metadata }),
			);
		} catch (cause) {
			// Slack closes a stream by itself after a long silence.
			if (wordOf(cause) !== "message_not_in_streaming_state") throw cause;
		}
	}

	/** Text in a stream cannot be removed again, so the running tool is shown in the thread's status line. */
	async status(target: Target, doing: string): Promise<void> {
		await this.#writer.showStatus(target, { doing });
	}

	async #imitate(target: Target, markdown: string, options: SendOptions): Promise<CreatedMessage> {
		const made = await this.#writer.create(target, render(markdown), options);
		this.#imitated.set(made.messageId, markdown);
		return made;
	}
}

/** Direct channels have their own kind of id. */
const isDirect = (target: Target): boolean => target.direct ?? /^[DUW]/.test(target.to);
