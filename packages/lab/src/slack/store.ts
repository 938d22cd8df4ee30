/** The content of a fake Slack workspace: messages in channels and threads, files, and how a person reads them. */

import type { Clock } from "@nexus-stream/protocol/clock";

export interface StoredFile {
	id: string;
	name: string;
	mimetype: string;
	size: number;
	data?: Buffer;
	title?: string;
	shares: { channel: string; ts: string }[];
}

export interface SlackMessage {
	ts: string;
	channel: string;
	thread_ts?: string;
	user: string;
	bot_id?: string;
	text: string;
	/** Streams hold markdown, other messages mrkdwn. */
	markdown: boolean;
	streaming: boolean;
	metadata?: unknown;
	files: StoredFile[];
	buttons: { label: string; value: string; action_id: string }[];
}

export const BOT = { user: "UBOT", bot: "BBOT", team: "TTEAM" } as const;

export class SlackStore {
	readonly messages: SlackMessage[] = [];
	readonly files = new Map<string, StoredFile>();
	readonly #clock: Clock;
	#counter = 0;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Later messages have greater stamps, and no two are the same. */
	stamp(): string {
		this.#counter += 1;
		return `${Math.floor(this.#clock.now() / 1000)}.${String(this.#counter).padStart(6, "0")}`;
	}

	add(message: Partial<SlackMessage> & { channel: string; text: string }): SlackMessage {
		const ours = message.user === undefined ? { user: BOT.user, bot_id: BOT.bot } : { user: message.user };
		const stored = { markdown: false, streaming: false, files: [], buttons: [], ts: this.stamp(), ...message, ...ours };
		this.messages.push(stored);
		return stored;
	}

	get(channel: string, ts: string): SlackMessage | undefined {
		return this.messages.find((message) => message.channel === channel && message.ts === ts);
	}

	remove(message: SlackMessage): void {
		this.messages.splice(this.messages.indexOf(message), 1);
	}

	/** `place` is a channel, or channel/thread. */
	in(place: string): SlackMessage[] {
		const [channel, thread] = place.split("/");
		return this.messages.filter(
			(message) => message.channel === channel && (thread === undefined || message.thread_ts === thread),
		);
	}

	addFile(name: string, size: number, mimetype = "application/octet-stream", data?: Buffer): StoredFile {
		const id = `F${String(this.files.size + 1).padStart(8, "0")}`;
		const file = { id, name, size, mimetype, shares: [], data };
		this.files.set(id, file);
		return file;
	}
}

/** As a person reads it: links show their label, entities their character. */
export function readable({ text, markdown, files }: SlackMessage): string {
	const names = files.map((file) => `[${file.title ?? file.name}]`).join("");
	if (markdown) return text + names;
	const plain = text.replace(/<([^<>|]*)(?:\|([^<>]*))?>/g, (_, link: string, label?: string) => label ?? link);
	return plain.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&") + names;
}

/** As the API shows it. */
export function wireMessage(message: SlackMessage, withMetadata: boolean): object {
	const { ts, thread_ts, user, bot_id, text, metadata, files } = message;
	return {
		type: "message",
		ts,
		user,
		text,
		bot_id,
		thread_ts,
		metadata: withMetadata ? metadata : undefined,
		files: files.length === 0 ? undefined : files.map(({ id, name }) => ({ id, name })),
	};
}
