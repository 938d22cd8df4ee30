/** The author of a message or session, and the name of a session. */

import type { SessionJson } from "@nexus-stream/protocol/api";
import { channelName } from "../adapters/channels.tsx";

/** The author fields of messages, events and sessions. */
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

/** An author other than the owner of this page. */
export interface Writer {
	readonly name: string;
	/** Undefined for an application, which uses the API. */
	readonly channel?: string;
	/** Where the person writes, in words. */
	readonly origin: string;
}

/** Undefined when the owner wrote it. */
export function writerOf({ channel = WEB, sender = OWNER, sender_name: name }: Written): Writer | undefined {
	if (channel === WEB && sender === OWNER) return undefined;
	if (channel === WEB && sender.startsWith(APP)) return { name: sender.slice(APP.length), origin: "application" };
	return { name: name || sender, channel, origin: channelName(channel) };
}

/** The other side of a session; undefined when only the owner writes in it. */
export function partnerOf(session: Written): Writer | undefined {
	const writer = writerOf(session);
	if (!writer?.channel || !session.group) return writer;
	return { ...writer, name: session.chat_name || "Group", origin: `${writer.origin} group` };
}

/** A label that this page generated for a new session. */
const GENERATED = /^chat-[0-9a-z]{26}$/;
export const newSessionLabel = (id: string): string => `chat-${id.toLowerCase()}`;

export const UNNAMED = "New session";

/** The name of the other side, the label that a person chose, or the first message. */
export function sessionName({ session, title, ...row }: Pick<SessionJson, "session" | "title"> & Written): string {
	const partner = partnerOf(row);
	if (partner) return partner.name;
	return GENERATED.test(session) ? title || UNNAMED : session;
}

/** Every run of the channel lab has its own session, which is not listed. */
export const isOrdinary = ({ session }: Pick<SessionJson, "session">): boolean => !session.startsWith("lab_");
