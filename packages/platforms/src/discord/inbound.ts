/** Reads a person's message from a message of Discord's gateway. */

import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import { inReplyTo } from "@nexus-stream/adapter/platform/reply";
import { type APIMessage, type GatewayMessageCreateDispatchData, MessageType } from "discord-api-types/v10";
import { heard } from "../heard.ts";

export interface DiscordFile extends RemoteFile {
	url: string;
}

/** Undefined: nothing a person said to the agent (system messages, other bots, webhooks, our own). */
export function readMessage(
	data: GatewayMessageCreateDispatchData,
	me: { id: string },
): MessageWithFiles<DiscordFile> | undefined {
	const { author, type } = data;
	if (author.id === me.id || author.bot || data.webhook_id !== undefined) return undefined;
	if (type !== MessageType.Default && type !== MessageType.Reply) return undefined;
	// A forwarded message is empty, and carries what it forwards.
	const forwarded = (data.message_snapshots ?? []).map(({ message }) => message);
	const attachments = [data, ...forwarded].flatMap((each) => each.attachments);
	const files = attachments.map((file) => ({
		name: file.filename,
		contentType: file.content_type ?? "application/octet-stream",
		bytes: file.size,
		url: file.url,
	}));
	const { text: said, mention } = addressed(data, me.id);
	const words = [
		said,
		...forwarded.map(({ content }) => content),
		...[data, ...forwarded].flatMap(inWords),
		repliedTo(data, me.id),
	];
	const direct = data.guild_id === undefined;
	const name = data.member?.nick ?? author.global_name ?? author.username;
	const answered = direct ? { user_id: author.id } : { reply_to: data.id };
	return heard(words, files, {
		eventId: data.id,
		from: { id: author.id, name },
		chat: { id: data.channel_id, type: direct ? "direct" : "group" },
		mention: direct ? undefined : mention,
		// A thread is a separate channel. `since`: our messages that answer this one are all newer.
		target: { to: data.channel_id, ...answered, direct, since: data.id },
		ts: Date.parse(data.timestamp),
	});
}

/** Our own words are known to the agent. */
function repliedTo({ referenced_message: replied }: GatewayMessageCreateDispatchData, me: string): string {
	if (!replied || replied.author.id === me) return "";
	const { author, content } = replied;
	return inReplyTo(author.global_name ?? author.username, [content, ...inWords(replied)].join(" "));
}

/** Things people send that are neither text nor files. */
function inWords({ sticker_items = [], poll }: Pick<APIMessage, "sticker_items" | "poll">): string[] {
	const stickers = sticker_items.map(({ name }) => `[sticker ${name}]`);
	if (!poll) return stickers;
	const answers = poll.answers.map(({ poll_media }) => poll_media.text ?? "").join(" / ");
	return [...stickers, `[poll ${poll.question.text ?? ""}: ${answers}]`];
}

/** The text without the bot's own mention and with names for the others', and whether the bot is addressed. */
function addressed(data: GatewayMessageCreateDispatchData, me: string): { text: string; mention: boolean } {
	const names = new Map(data.mentions.map((user) => [user.id, user.global_name ?? user.username]));
	const mention = names.has(me) || data.referenced_message?.author.id === me;
	const named = data.content.replace(/<@!?(\d+)>/g, (whole, id: string) => {
		if (id === me) return "";
		const name = names.get(id);
		return name === undefined ? whole : `@${name}`;
	});
	const text = names.has(me) ? named.replace(/[ \t]{2,}/g, " ").trim() : named;
	return { text, mention };
}
