/** How each bundled platform names a chat. The daemon loads this file, so it needs no library. */

import type { Target } from "@nexus-stream/adapter";
import type { Channel } from "./channels.ts";

/** A chat has several spellings, and a target says more than where. */
type ChatNames = (target: Target) => readonly string[];

/** The prefix of a person's id on Discord. */
export const DISCORD_PERSON = "user:";
export const SIGNAL_GROUP = "group:";
/** On Nostr a public thread is named by its first event, a private room of several people by its members. */
export const NOSTR_THREAD = "thread:";
export const NOSTR_ROOM = "room:";

/** A person whose number WhatsApp does not tell has an id. */
export const isWhatsAppId = (to: string): boolean => /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]+$/.test(to);

export const digitsOf = (to: string): string => to.replace(/[^\d]/g, "");

/** Numbers are the same without the marks that people write between digits. */
const withoutMarks = (number: string): string => number.replace(/[\s().-]/g, "");

const CHAT_NAMES: { readonly [channel in Channel]: ChatNames } = {
	/** A thread is a separate channel. A direct channel has its own id, and the person's. */
	discord({ to, thread_id, user_id }) {
		if (thread_id !== undefined) return [thread_id];
		const person = typeof user_id === "string" ? [`${DISCORD_PERSON}${user_id}`] : [];
		return [to.replace(/^channel:/, ""), ...person];
	},
	/** Public names are the same in any case. Each topic of a forum is a chat. */
	telegram: ({ to, thread_id = "" }) => [`${to.startsWith("@") ? to.toLowerCase() : to}/${thread_id}`],
	/** A direct channel has its own id, and the person's. Each thread is a chat. */
	slack({ to, thread_id = "", direct, user_id }) {
		const names = direct && typeof user_id === "string" ? [to, user_id] : [to];
		return names.map((name) => `${name}/${thread_id}`);
	},
	whatsapp: ({ to }) => [isWhatsAppId(to) ? to : digitsOf(to)],
	sms: ({ to }) => [withoutMarks(to)],
	/** A person has an id and mostly a number. The ids of groups are base64. */
	signal({ to, uuid }) {
		if (to.startsWith(SIGNAL_GROUP)) return [to];
		const names = typeof uuid === "string" ? [to, uuid] : [to];
		return names.map((name) => name.replace(/^\+[\d\s().-]+$/, withoutMarks).toLowerCase());
	},
	/** Messages shows one chat with a person, whatever service brings the messages: "iMessage;-;+1…", "any;-;+1…" and the number alone. */
	imessage({ to }) {
		const [, kind, id] = /^\w+;([-+]);(.*)$/s.exec(to) ?? ["", "-", to];
		if (kind === "+") return [`+;${id}`];
		const person = (id ?? to).toLowerCase();
		return [person.includes("@") ? person : withoutMarks(person)];
	},
	/** A thread with the same people. A mail without a thread begins one, under its subject. */
	gmail({ to, thread_id, subject }) {
		const people = to.split(",").map((each) => (/<([^<>]*)>\s*$/.exec(each)?.[1] ?? each).trim().toLowerCase());
		const begun = typeof subject === "string" ? subject : "";
		return [JSON.stringify([people.toSorted(), thread_id === undefined ? { begun } : thread_id])];
	},
	/** A person is written as npub or as hex. */
	nostr({ to }) {
		const name = to.replace(/^nostr:/, "").toLowerCase();
		return [name.startsWith("npub1") ? (hexOf(name.slice("npub1".length)) ?? name) : name];
	},
};

const BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const KEY_BYTES = 32;
const CHECKSUM_CHARS = 6;

/** The bytes of a bech32 text, five bits a letter; comparing names needs no checksum. */
function hexOf(letters: string): string | undefined {
	let bits = "";
	for (const letter of letters.slice(0, -CHECKSUM_CHARS)) {
		const value = BECH32.indexOf(letter);
		if (value < 0) return undefined;
		bits += value.toString(2).padStart(5, "0");
	}
	const bytes = bits.match(/.{8}/g) ?? [];
	if (bytes.length !== KEY_BYTES) return undefined;
	return bytes.map((byte) => Number.parseInt(byte, 2).toString(16).padStart(2, "0")).join("");
}

const byChannel: ReadonlyMap<string, ChatNames> = new Map(Object.entries(CHAT_NAMES));

/** For unknown platforms, address and thread name the chat. */
const plainNames: ChatNames = ({ to, thread_id }) => [JSON.stringify([to, thread_id ?? null])];

/** Whether two targets are the same chat, in the words of their platform. */
export function isSameChat(channel: string, a: Target, b: Target): boolean {
	const namesOf = byChannel.get(channel) ?? plainNames;
	const known = new Set(namesOf(a));
	return namesOf(b).some((name) => known.has(name));
}
