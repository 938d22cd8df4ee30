/** Reads a person's message from a Telegram update. */

import type { Target } from "@nexus-stream/adapter";
import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import { inReplyTo } from "@nexus-stream/adapter/platform/reply";
import type { Chat, Message, MessageEntity, Sticker, Update, User } from "grammy/types";
import { heard } from "../heard.ts";

export interface TelegramFile extends RemoteFile {
	fileId: string;
}

/** Undefined: nothing a person said to the agent (service messages, other bots, our own). */
export function readUpdate(
	update: Update,
	me: Pick<User, "id" | "username">,
): MessageWithFiles<TelegramFile> | undefined {
	const { message } = update;
	if (!message) return undefined;
	const { from, sender_chat: senderChat, chat } = message;
	const sender = senderChat ?? from;
	// Anonymous admins write as a chat through a bot of Telegram's.
	if (!sender || from?.id === me.id || (from?.is_bot && !senderChat)) return undefined;
	const { text, mention } = addressed(message, me);
	const direct = chat.type === "private";
	return heard([text, repliedTo(message, me)], filesOf(message), {
		eventId: `${chat.id}:${message.message_id}`,
		from: { id: String(sender.id), name: titleOf(sender) || undefined },
		chat: { id: String(chat.id), type: direct ? "direct" : "group", name: chat.title || undefined },
		mention: direct ? undefined : mention,
		target: targetOf(message, direct),
		ts: message.date * 1000,
	});
}

const titleOf = (sender: Chat | User): string | undefined =>
	"title" in sender ? sender.title : nameOf(sender as Exclude<typeof sender, { title: string }>);

/** Our own words are known to the agent, but not which part of them is meant. */
function repliedTo({ reply_to_message: replied, quote }: Message, me: Pick<User, "id">): string {
	if (quote?.is_manual) return inReplyTo(replied && authorOf(replied, me), quote.text);
	if (!replied || replied.from?.id === me.id) return "";
	return inReplyTo(authorOf(replied, me), replied.text ?? replied.caption ?? describe(replied as Message));
}

type Author = Pick<Message, "from" | "sender_chat">;

function authorOf({ from, sender_chat }: Author, me: Pick<User, "id">): string | undefined {
	const author = sender_chat ?? from;
	return from?.id === me.id ? "you" : author && titleOf(author);
}

export const nameOf = (person: { first_name?: string; last_name?: string; username?: string }): string | undefined =>
	[person.first_name, person.last_name].filter(Boolean).join(" ") || person.username;

function targetOf(message: Message, direct: boolean): Target {
	const thread = message.is_topic_message ? message.message_thread_id : undefined;
	return {
		to: String(message.chat.id),
		thread_id: thread === undefined ? undefined : String(thread),
		reply_to: direct ? undefined : String(message.message_id),
		direct,
	};
}

/** The text without the bot's own name, and whether the name was there or the bot's message is answered. */
function addressed(message: Message, me: Pick<User, "id" | "username">): { text: string; mention: boolean } {
	const text = message.text ?? message.caption ?? describe(message);
	const entities = message.entities ?? message.caption_entities ?? [];
	const name = `@${me.username ?? ""}`.toLowerCase();
	let mention = message.reply_to_message?.from?.id === me.id;
	let rest = text;
	for (const entity of entities.toReversed()) {
		const cut = nameIn(text, entity, name, me.id);
		if (!cut) continue;
		mention = true;
		rest = rest.slice(0, cut.from) + rest.slice(cut.to);
	}
	return { text: mention && rest !== text ? rest.replace(/[ \t]{2,}/g, " ").trim() : text, mention };
}

/** Offsets count UTF-16 units, as strings here do. */
function nameIn(
	text: string,
	entity: MessageEntity,
	name: string,
	id: number,
): { from: number; to: number } | undefined {
	const from = entity.offset;
	const to = from + entity.length;
	const said = text.slice(from, to).toLowerCase();
	if (entity.type === "mention" && said === name) return { from, to };
	if (entity.type === "text_mention" && entity.user.id === id) return { from, to };
	return entity.type === "bot_command" && said.endsWith(name) ? { from: to - name.length, to } : undefined;
}

/** Things people send that are neither text nor files. */
function describe({ location, venue, contact, sticker, poll, dice, story }: Message): string {
	if (location) {
		const named = venue ? ` ${[venue.title, venue.address].filter(Boolean).join(", ")}` : "";
		return `[location ${location.latitude}, ${location.longitude}${named}]`;
	}
	if (contact) return `[contact ${nameOf(contact) ?? ""} ${contact.phone_number}]`;
	// A static sticker comes as a picture; the agent could not open the others.
	if (sticker && !isStill(sticker)) return `[sticker ${sticker.emoji ?? ""}]`.replace(" ]", "]");
	if (poll) return `[poll ${poll.question}: ${poll.options.map(({ text }) => text).join(" / ")}]`;
	if (dice) return `[${dice.emoji} ${dice.value}]`;
	return story ? "[story]" : "";
}

const isStill = ({ is_animated, is_video }: Sticker): boolean => !is_animated && !is_video;

function filesOf(message: Message): TelegramFile[] {
	const { sticker } = message;
	const kinds: [
		{ file_id: string; file_size?: number; mime_type?: string; file_name?: string } | undefined,
		string,
		string,
	][] = [
		// An animation is announced as a document too.
		[message.animation ? undefined : message.document, "file", "application/octet-stream"],
		[message.photo?.at(-1), "photo.jpg", "image/jpeg"],
		[message.voice, "voice.ogg", "audio/ogg"],
		[message.audio, "audio.mp3", "audio/mpeg"],
		[message.video, "video.mp4", "video/mp4"],
		[message.animation, "animation.mp4", "video/mp4"],
		[message.video_note, "video.mp4", "video/mp4"],
		[sticker && isStill(sticker) ? sticker : undefined, "sticker.webp", "image/webp"],
	];
	return kinds.flatMap(([file, name, contentType]) => {
		if (!file) return [];
		const { file_id: fileId, file_name, mime_type, file_size: bytes } = file;
		return [{ fileId, name: file_name ?? name, contentType: mime_type ?? contentType, bytes }];
	});
}
