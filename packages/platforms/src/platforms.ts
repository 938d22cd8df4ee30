/** The bundled platforms: their names, how each is started, and how each names a chat. The door of this package. */

import { fileURLToPath } from "node:url";
import type { Target } from "@nexus-stream/adapter";
import { CHANNELS, type Channel } from "./channels.ts";
import { chatNames as discord } from "./discord/chat.ts";
import { chatNames as gmail } from "./gmail/chat.ts";
import { chatNames as imessage } from "./imessage/chat.ts";
import { chatNames as nostr } from "./nostr/chat.ts";
import { chatNames as signal } from "./signal/chat.ts";
import { chatNames as slack } from "./slack/chat.ts";
import { chatNames as sms } from "./sms/chat.ts";
import { chatNames as telegram } from "./telegram/chat.ts";
import { chatNames as whatsapp } from "./whatsapp/chat.ts";

export { CHANNEL_BLOCKS, CHANNELS, type Channel } from "./channels.ts";

export const isBundled = (channel: string): boolean => (CHANNELS as readonly string[]).includes(channel);

export const bundledCommand = (channel: string): readonly string[] => [
	process.execPath,
	// It holds the keys of accounts: no signal opens its debugger.
	"--disable-sigusr1",
	...mainNextTo(import.meta.url),
	channel,
];

/** The entry of the bundled adapters, with the flag that it needs when it runs from source. */
const mainNextTo = (here: string): string[] =>
	here.endsWith(".ts")
		? ["--conditions=nexus-source", fileURLToPath(new URL("./main.ts", here))]
		: [fileURLToPath(new URL("../platforms/main.js", here))];

/** A chat has several spellings, and a target says more than where. */
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

/** Whether two targets are the same chat, in the words of their platform. */
export function isSameChat(channel: string, a: Target, b: Target): boolean {
	const namesOf = byChannel.get(channel) ?? plainNames;
	const known = new Set(namesOf(a));
	return namesOf(b).some((name) => known.has(name));
}
