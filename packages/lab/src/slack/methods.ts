/** The Web API methods of the fake Slack, with the refusals of the real ones. */

import { BOT, type SlackMessage, type SlackStore, wireMessage } from "./store.ts";

export type SlackArgs = Record<string, string | undefined>;

export class SlackRefusal extends Error {}

const refuse = (word: string): never => {
	throw new SlackRefusal(word);
};

export interface MethodOptions {
	store: SlackStore;
	url: string;
	socketUrl: string;
	streaming?: boolean;
	foreign?: readonly string[];
}

const POST_CHARS_MAX = 40_000;
const UPDATE_CHARS_MAX = 4000;
const STREAM_CHARS_MAX = 12_000;

export function methodsOf(options: MethodOptions): Record<string, (args: SlackArgs) => object> {
	const { store } = options;
	const channelOf = (args: SlackArgs): string => {
		const channel = args.channel ?? args.channel_id ?? "";
		if (!/^[CDG][A-Z0-9]+$/.test(channel)) refuse("channel_not_found");
		if (options.foreign?.includes(channel)) refuse("not_in_channel");
		return channel;
	};
	const messageOf = (args: SlackArgs): SlackMessage => {
		const message = store.get(channelOf(args), args.ts ?? "") ?? refuse("message_not_found");
		return message.user === BOT.user ? message : refuse("cant_update_message");
	};
	return {
		"auth.test": () => ({ user: "nexus", user_id: BOT.user, bot_id: BOT.bot, team: "Fake", team_id: BOT.team }),
		"apps.connections.open": () => ({ url: options.socketUrl }),
		"conversations.open": ({ users = "" }) =>
			/^[UW][A-Z0-9]+$/.test(users) ? { channel: { id: `D${users}` } } : refuse("user_not_found"),
		"chat.postMessage"(args) {
			const text = textOf(args.text, POST_CHARS_MAX);
			const more = { ...threadOf(args), ...metadataOf(args), ...buttonsOf(args) };
			const message = store.add({ channel: channelOf(args), text, ...more });
			return { ts: message.ts, channel: message.channel };
		},
		"chat.postEphemeral"(args) {
			channelOf(args);
			if (!args.user) refuse("user_not_in_channel");
			textOf(args.text, POST_CHARS_MAX);
			return { message_ts: store.stamp() };
		},
		"chat.update"(args) {
			const message = messageOf(args);
			if (message.streaming) refuse("streaming_state_conflict");
			message.text = textOf(args.text, UPDATE_CHARS_MAX);
			message.markdown = false;
			delete message.metadata;
			// A text alone leaves the blocks as they are.
			Object.assign(message, metadataOf(args), buttonsOf(args));
			return { ts: message.ts, channel: message.channel };
		},
		"chat.delete"(args) {
			const message = messageOf(args);
			store.remove(message);
			return { ts: message.ts, channel: message.channel };
		},
		...streamMethods(options, channelOf, messageOf),
		...readMethods(store, channelOf),
		...fileMethods(options, channelOf),
		"assistant.threads.setStatus"(args) {
			channelOf(args);
			if (!args.thread_ts) refuse("invalid_thread_ts");
			return {};
		},
	};
}

function streamMethods(
	{ store, streaming = true }: MethodOptions,
	channelOf: (args: SlackArgs) => string,
	messageOf: (args: SlackArgs) => SlackMessage,
): Record<string, (args: SlackArgs) => object> {
	const streamOf = (args: SlackArgs): SlackMessage => {
		const message = messageOf(args);
		return message.streaming ? message : refuse("message_not_in_streaming_state");
	};
	return {
		"chat.startStream"(args) {
			if (!streaming) refuse("unknown_method");
			const channel = channelOf(args);
			if (!args.thread_ts) refuse("invalid_thread_ts");
			if (!channel.startsWith("D") && !args.recipient_user_id) refuse("missing_recipient_user_id");
			if (!channel.startsWith("D") && !args.recipient_team_id) refuse("missing_recipient_team_id");
			if (args.metadata !== undefined) refuse("invalid_arguments");
			const text = args.markdown_text === undefined ? "" : textOf(args.markdown_text, STREAM_CHARS_MAX);
			const message = store.add({ channel, text, markdown: true, streaming: true, ...threadOf(args) });
			return { ts: message.ts, channel };
		},
		"chat.appendStream"(args) {
			const message = streamOf(args);
			message.text += textOf(args.markdown_text, STREAM_CHARS_MAX);
			return { ts: message.ts, channel: message.channel };
		},
		"chat.stopStream"(args) {
			const message = streamOf(args);
			if (args.markdown_text !== undefined) message.text += textOf(args.markdown_text, STREAM_CHARS_MAX);
			message.streaming = false;
			Object.assign(message, metadataOf(args));
			return { ts: message.ts, channel: message.channel };
		},
	};
}

function readMethods(store: SlackStore, channelOf: (args: SlackArgs) => string) {
	const page = (messages: SlackMessage[], args: SlackArgs): object => {
		const since = messages.filter(({ ts }) => Number(ts) > Number(args.oldest ?? 0));
		const from = Number(args.cursor ?? 0);
		const to = from + Number(args.limit ?? 100);
		const shown = since.slice(from, to).map((message) => wireMessage(message, args.include_all_metadata === "true"));
		return { messages: shown, response_metadata: { next_cursor: to < since.length ? String(to) : "" } };
	};
	return {
		"conversations.history"(args: SlackArgs) {
			const top = store.in(channelOf(args)).filter(({ ts, thread_ts }) => thread_ts === undefined || thread_ts === ts);
			return page(top.toReversed(), args);
		},
		"conversations.replies"(args: SlackArgs) {
			const channel = channelOf(args);
			return page(
				store.in(channel).filter(({ ts, thread_ts }) => ts === args.ts || thread_ts === args.ts),
				args,
			);
		},
	};
}

function fileMethods({ store, url }: MethodOptions, channelOf: (args: SlackArgs) => string) {
	return {
		"files.getUploadURLExternal"({ filename = "", length = "" }: SlackArgs) {
			if (filename === "" || !/^[1-9]\d*$/.test(length)) refuse("invalid_arguments");
			const file = store.addFile(filename, Number(length));
			return { file_id: file.id, upload_url: `${url}/upload/${file.id}` };
		},
		"files.completeUploadExternal"(args: SlackArgs) {
			const wanted = JSON.parse(args.files ?? "[]") as { id: string; title?: string }[];
			const files = wanted.map(({ id, title }) => {
				const file = store.files.get(id);
				if (!file?.data) return refuse("file_not_found");
				return Object.assign(file, title === undefined ? {} : { title });
			});
			if (args.channel_id !== undefined) {
				const message = store.add({ channel: channelOf(args), text: "", files, ...threadOf(args) });
				for (const file of files) file.shares.push({ channel: message.channel, ts: message.ts });
			}
			return { files: files.map(({ id, title }) => ({ id, title })) };
		},
		"files.info"({ file: id = "" }: SlackArgs) {
			const file = store.files.get(id) ?? refuse("file_not_found");
			const shares = Object.fromEntries(file.shares.map(({ channel, ts }) => [channel, [{ ts }]]));
			return { file: { id, name: file.name, shares: { public: shares } } };
		},
	};
}

function textOf(text: string | undefined, charsMax: number): string {
	if (text === undefined || text.trim() === "") return refuse("no_text");
	return text.length > charsMax ? refuse("msg_too_long") : text;
}

function threadOf({ thread_ts }: SlackArgs): { thread_ts?: string } {
	if (thread_ts === undefined) return {};
	return /^\d+\.\d{6}$/.test(thread_ts) ? { thread_ts } : refuse("invalid_thread_ts");
}

interface Block {
	type: string;
	text?: { text: string };
	elements?: { type: string; action_id: string; value: string; text: { text: string } }[];
}

/** Limits as in the documents: 3,000 characters of a section, 25 elements, 75 characters of a label, 2,000 of a value. */
function buttonsOf({ blocks }: SlackArgs): Partial<Pick<SlackMessage, "buttons">> {
	if (blocks === undefined) return {};
	const given = JSON.parse(blocks) as Block[];
	const elements = given.flatMap(({ elements = [] }) => elements);
	const isLong = ({ text }: Block) => text !== undefined && (text.text.length === 0 || text.text.length > 3000);
	const isWrong = ({ text, value, action_id }: (typeof elements)[number]) =>
		text.text.length > 75 || value.length > 2000 || action_id.length > 255;
	const ids = new Set(elements.map(({ action_id }) => action_id));
	if (given.length > 50 || given.some(isLong) || elements.length > 25) refuse("invalid_blocks");
	if (elements.some(isWrong) || ids.size < elements.length) refuse("invalid_blocks");
	return { buttons: elements.map(({ text, value, action_id }) => ({ label: text.text, value, action_id })) };
}

function metadataOf({ metadata }: SlackArgs): { metadata?: unknown } {
	if (metadata === undefined) return {};
	const value = JSON.parse(metadata);
	return typeof value.event_type === "string" && typeof value.event_payload === "object"
		? { metadata: value }
		: refuse("invalid_metadata_format");
}
