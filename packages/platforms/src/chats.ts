/** Whether two targets are the same chat, in the words of their platform: a chat has several spellings, and a target says more than where. */

import type { Target } from "@nexus-stream/adapter";
import type { Channel } from "./channels.ts";
import { chatNames as discord } from "./discord/chat.ts";
import { chatNames as gmail } from "./gmail/chat.ts";
import { chatNames as imessage } from "./imessage/chat.ts";
import { chatNames as nostr } from "./nostr/chat.ts";
import { chatNames as signal } from "./signal/chat.ts";
import { chatNames as slack } from "./slack/chat.ts";
import { chatNames as sms } from "./sms/chat.ts";
import { chatNames as telegram } from "./telegram/chat.ts";
import { chatNames as whatsapp } from "./whatsapp/chat.ts";

type ChatNames = (target: Target) => readonly string[];

const BUNDLED: { readonly [channel in Channel]: ChatNames } = {
	discord,
	telegram,
	slack,
	whatsapp,
	sms,
	signal,
	imessage,
	gmail,
	nostr,
};

const byChannel: ReadonlyMap<string, ChatNames> = new Map(Object.entries(BUNDLED));

/** For unknown platforms, address and thread name the chat. */
const plainNames: ChatNames = ({ to, thread_id }) => [JSON.stringify([to, thread_id ?? null])];

export function isSameChat(channel: string, a: Target, b: Target): boolean {
	const namesOf = byChannel.get(channel) ?? plainNames;
	const known = new Set(namesOf(a));
	return namesOf(b).some((name) => known.has(name));
}
