/** Reads a person's message from a public event or a rumor. */

import { createHash } from "node:crypto";
import type { InboundMessage, Target } from "@nexus-stream/adapter";
import type { Event } from "nostr-tools/core";
import { npubEncode } from "nostr-tools/nip19";
import { NOSTR_ROOM, NOSTR_THREAD } from "../chats.ts";
import { CHAT_MESSAGE, COMMENT, FILE_MESSAGE, NOTE, type Tags, THREAD_START, type ThreadTarget } from "./events.ts";
import { readPubkey } from "./keys.ts";
import type { Rumor } from "./private.ts";

export interface NostrIdentity {
	pubkey: string;
	wrote(eventId: string): boolean;
}

/** An answer mentions at most this many people of a thread. */
const NOTIFIED_MAX = 20;
/** Members of a private room; each answer is encrypted for each of them. */
export const MEMBERS_MAX = 20;

/** Undefined: nothing that was said to the agent. */
export function readPublic(event: Event, me: NostrIdentity): InboundMessage | undefined {
	if (event.pubkey === me.pubkey || ![NOTE, THREAD_START, COMMENT].includes(event.kind)) return undefined;
	if (!valuesOf(event.tags, "p").includes(me.pubkey)) return undefined;
	const { text, named } = readText(event, me);
	if (text === "") return undefined;
	const { root, target } = event.kind === NOTE ? replyToNote(event, me) : replyToComment(event);
	const to = `${NOSTR_THREAD}${root}`;
	return {
		eventId: event.id,
		from: { id: event.pubkey, name: npubEncode(event.pubkey) },
		chat: { id: to, type: "group" },
		text,
		mention: named || addresses(event, me),
		target: { to, direct: false, reply_to: event.id, ...target },
		ts: event.created_at * 1000,
	};
}

/** A first event that names us, or an answer to one of ours. Others of the thread are named in every reply, and not addressed by it. */
function addresses(event: Event, me: NostrIdentity): boolean {
	const parent = parentOf(event);
	return parent === undefined || parent.author === me.pubkey || me.wrote(parent.id);
}

/** NIP-10: by markers, else by position; NIP-22: the small letters. */
function parentOf({ kind, tags }: Pick<Event, "kind" | "tags">): { id: string; author?: string } | undefined {
	const links = linksOf(tags);
	const link =
		kind === COMMENT
			? links.at(-1)
			: (links.find((tag) => tag[3] === "reply") ??
				links.find((tag) => tag[3] === "root") ??
				links.filter((tag) => tag[3] !== "mention").at(-1));
	if (link?.[1] === undefined) return undefined;
	const author = kind === COMMENT ? (link[3] ?? valuesOf(tags, "p").at(-1)) : link[4];
	return { id: link[1], author: author || undefined };
}

/** NIP-10. */
function replyToNote(event: Event, me: NostrIdentity): { root: string; target: ThreadTarget } {
	const links = linksOf(event.tags).filter(([, , , marker]) => marker !== "mention");
	const first = links.find((tag) => tag[3] === "root") ?? links[0];
	const root = first?.[1] ?? event.id;
	const own = ["e", event.id, "", root === event.id ? "root" : "reply", event.pubkey];
	const above =
		root === event.id
			? []
			: [["e", root, hintOf(first), "root", ...(HEX_ID.test(first?.[4] ?? "") ? [first![4]!] : [])]];
	const people = new Set([event.pubkey, ...valuesOf(event.tags, "p")].filter((pubkey) => pubkey !== me.pubkey));
	const notified = [...people].slice(0, NOTIFIED_MAX).map((pubkey) => ["p", pubkey]);
	return { root, target: { kind: NOTE, tags: [...above, own, ...notified] } };
}

/** NIP-22: the root in capital letters, what is answered in small ones. */
function replyToComment(event: Event): { root: string; target: ThreadTarget } {
	const above = event.tags
		.filter(([name = "", ...values]) => /^[EAIKP]$/.test(name) && values.every(isShort))
		.slice(0, ROOT_TAGS_MAX)
		.map((tag) => tag.slice(0, ROOT_TAG_VALUES_MAX));
	const answered: Tags = [
		["e", event.id, "", event.pubkey],
		["k", String(event.kind)],
		["p", event.pubkey],
	];
	const own = answered.map(([name = "", ...values]) => [name.toUpperCase(), ...values]);
	const root = event.kind === COMMENT ? above.find(([name = ""]) => /^[EAI]$/.test(name)) : undefined;
	return { root: root?.[1] ?? event.id, target: { kind: COMMENT, tags: [...(root ? above : own), ...answered] } };
}

/** A rumor is judged by its own time and id; its wrap's mean nothing. */
export function readRumor(rumor: Rumor, me: NostrIdentity): InboundMessage | undefined {
	if (rumor.pubkey === me.pubkey) return undefined;
	if (rumor.kind !== CHAT_MESSAGE && rumor.kind !== FILE_MESSAGE) return undefined;
	const { text: said, named } = readText(rumor, me);
	const text = rumor.kind === FILE_MESSAGE ? "[file]" : said;
	if (text === "") return undefined;
	const others = new Set([rumor.pubkey, ...valuesOf(rumor.tags, "p")]);
	others.delete(me.pubkey);
	const members = [...others].toSorted();
	if (members.length > MEMBERS_MAX) return undefined;
	const message = {
		eventId: rumor.id,
		from: { id: rumor.pubkey, name: npubEncode(rumor.pubkey) },
		text,
		ts: rumor.created_at * 1000,
	};
	if (members.length === 1) {
		const target: Target = { to: rumor.pubkey, direct: true, reply_to: rumor.id };
		return { ...message, chat: { id: rumor.pubkey, type: "direct" }, target };
	}
	const to = `${NOSTR_ROOM}${createHash("sha256").update(members.join()).digest("hex").slice(0, 32)}`;
	const parent = parentOf({ kind: NOTE, tags: rumor.tags });
	return {
		...message,
		chat: { id: to, type: "group" },
		mention: named || (parent !== undefined && me.wrote(parent.id)),
		target: { to, direct: false, reply_to: rumor.id, members },
	};
}

const HEX_ID = /^[0-9a-f]{64}$/;
/** The limit for tags that an answer repeats: the answer's intent has to fit a note. */
const VALUE_CHARS_MAX = 256;
const ROOT_TAGS_MAX = 4;
const ROOT_TAG_VALUES_MAX = 4;

const isShort = (value: string): boolean => value.length <= VALUE_CHARS_MAX;

const hintOf = (tag: readonly string[] | undefined): string => (isShort(tag?.[2] ?? "") ? (tag?.[2] ?? "") : "");

const linksOf = (tags: Tags): Tags => tags.filter(([name, id = ""]) => name === "e" && HEX_ID.test(id));

/** Ids and keys are hex. */
const valuesOf = (tags: Tags, wanted: string): string[] =>
	tags.flatMap(([name, value = ""]) => (name === wanted && HEX_ID.test(value) ? [value] : []));

const PERSON = /\bnostr:(?:npub1|nprofile1)[02-9ac-hj-np-z]+/g;

/** Our mention goes and counts; others stay as they are. */
function readText({ content }: Pick<Event, "content">, me: NostrIdentity): { text: string; named: boolean } {
	let named = false;
	const text = content.replace(PERSON, (link) => {
		if (readPubkey(link) !== me.pubkey) return link;
		named = true;
		return "";
	});
	return { text: (named ? text.replace(/[ \t]{2,}/g, " ") : text).trim(), named };
}
