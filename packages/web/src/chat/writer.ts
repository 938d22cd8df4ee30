/** Who wrote a message or began a session, and what a session is called. Pure. */

import type { SessionJson } from "@nexus-stream/protocol";
import { channelName } from "../adapters/channels.ts";

/** As messages, events and sessions have it. */
export interface Written {
	readonly channel?: string;
	readonly sender?: string;
	readonly sender_name?: string;
	readonly group?: true;
	readonly chat_name?: string;
}

const WEB = "web";
const OWNER = "owner";
const APP = "app:";

/** Somebody else than the owner, whose page this is. */
export interface Writer {
	readonly name: string;
	/** Left out for an application, which uses the API. */
	readonly channel?: string;
	/** Where they write. */
	readonly origin: string;
}

/** Undefined: the owner wrote it. */
export function writerOf({ channel = WEB, sender = OWNER, sender_name: name }: Written): Writer | undefined {
	if (channel === WEB && sender === OWNER) return undefined;
	if (channel === WEB && sender.startsWith(APP)) return { name: sender.slice(APP.length), origin: "application" };
	return { name: name || sender, channel, origin: channelName(channel) };
}

/** Who a session is with; undefined: only the owner. */
export function partnerOf(session: Written): Writer | undefined {
	const writer = writerOf(session);
	if (!writer?.channel || !session.group) return writer;
	return { ...writer, name: session.chat_name || "Group", origin: `${writer.origin} group` };
}

/** Made by this page for a new session: nobody chose it. */
const MADE = /^chat-[0-9a-z]{26}$/;
export const newSessionLabel = (id: string): string => `chat-${id.toLowerCase()}`;

export const UNNAMED = "New session";

/** By whom it is with, by the label that a person gave it, or by its first message. */
export function sessionName({ session, title, ...row }: Pick<SessionJson, "session" | "title"> & Written): string {
	const partner = partnerOf(row);
	if (partner) return partner.name;
	return MADE.test(session) ? title || UNNAMED : session;
}
