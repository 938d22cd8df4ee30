/** Reads a person's message from a signal-cli envelope. */

import type { Target } from "@nexus-stream/adapter";
import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import { inReplyTo } from "@nexus-stream/adapter/platform/reply";
import { SIGNAL_GROUP } from "../chats.ts";
import { heard } from "../heard.ts";

export interface SignalFile extends RemoteFile {
	id: string;
}

export interface SignalIdentity {
	number: string;
	uuid: string | undefined;
}

interface SignalPerson {
	name?: string | null;
	number?: string | null;
	uuid?: string | null;
}

interface SharedContact {
	name?: { given?: string | null; family?: string | null } | null;
	phone?: readonly { value?: string | null }[];
	organization?: string | null;
}

interface Envelope {
	sourceNumber?: string | null;
	sourceUuid?: string | null;
	sourceName?: string | null;
	timestamp: number;
	dataMessage?: DataMessage;
}

interface DataMessage {
	timestamp: number;
	message?: string | null;
	reaction?: object;
	mentions?: readonly (SignalPerson & { start: number; length: number })[];
	quote?: { authorNumber?: string | null; authorUuid?: string | null; text?: string | null };
	attachments?: readonly { id: string; contentType?: string; filename?: string | null; size?: number }[];
	sticker?: object;
	contacts?: readonly SharedContact[];
	groupInfo?: { groupId: string; groupName?: string };
}

/** Undefined: nothing a person said to the agent (receipts, typing, reactions, changes, our own other devices). */
export function readEnvelope(payload: unknown, me: SignalIdentity): MessageWithFiles<SignalFile> | undefined {
	const { envelope } = (payload ?? {}) as { envelope?: Envelope };
	const data = envelope?.dataMessage;
	if (!envelope || !data || data.reaction) return undefined;
	const from = envelope.sourceNumber ?? envelope.sourceUuid;
	const sender = { number: envelope.sourceNumber ?? null, uuid: envelope.sourceUuid ?? null };
	if (!from || isMe(sender, me)) return undefined;
	const { text, mention } = readText(data, me);
	const files = (data.attachments ?? []).map((file) => ({
		id: file.id,
		name: file.filename ?? file.id,
		contentType: file.contentType ?? "application/octet-stream",
		bytes: file.size,
	}));
	const group = data.groupInfo;
	const to = group ? `${SIGNAL_GROUP}${group.groupId}` : from;
	const uuid = envelope.sourceUuid && envelope.sourceUuid !== to ? { uuid: envelope.sourceUuid } : {};
	return heard([text, ...inWords(data), repliedTo(data, me)], files, {
		// A person's messages have different times.
		eventId: `${envelope.sourceUuid ?? from}:${data.timestamp}`,
		from: { id: from, name: envelope.sourceName || undefined },
		chat: { id: to, type: group ? "group" : "direct", name: group?.groupName || undefined },
		mention: group && mention,
		target: group
			? { to, direct: false, reply_to: String(data.timestamp), reply_author: from }
			: { to, direct: true, ...uuid },
		ts: data.timestamp,
	});
}

/** Things people send that are neither text nor files. signal-cli says of a sticker only its number. */
function inWords({ sticker, contacts = [] }: DataMessage): string[] {
	const people = contacts.map(({ name, phone, organization }) => {
		const words = [name?.given, name?.family, name?.given || name?.family ? "" : organization, phone?.[0]?.value];
		return `[contact ${words.filter(Boolean).join(" ")}]`;
	});
	return [...(sticker ? ["[sticker]"] : []), ...people];
}

const isMe = ({ number, uuid }: SignalPerson, me: SignalIdentity): boolean =>
	number === me.number || (me.uuid !== undefined && uuid === me.uuid);

const isAnswer = ({ quote }: DataMessage, me: SignalIdentity): boolean =>
	quote !== undefined && isMe({ number: quote.authorNumber ?? null, uuid: quote.authorUuid ?? null }, me);

/** Our own words are known to the agent. */
function repliedTo(data: DataMessage, me: SignalIdentity): string {
	const { quote } = data;
	if (!quote || isAnswer(data, me)) return "";
	return inReplyTo(quote.authorNumber ?? quote.authorUuid ?? undefined, quote.text ?? "");
}

/** Mentions stand for a name at their place; ours goes, others are written out. */
function readText(data: DataMessage, me: SignalIdentity): { text: string; mention: boolean } {
	let text = data.message ?? "";
	let named = false;
	for (const mention of (data.mentions ?? []).toSorted((a, b) => b.start - a.start)) {
		const ours = isMe(mention, me);
		named ||= ours;
		const name = ours ? "" : `@${mention.name ?? mention.number ?? mention.uuid ?? ""}`;
		text = text.slice(0, mention.start) + name + text.slice(mention.start + mention.length);
	}
	if (named) text = text.replace(/[ \t]{2,}/g, " ").trim();
	return { text, mention: named || isAnswer(data, me) };
}

export const recipientOf = ({ to }: Target): { groupId: string } | { recipient: string[] } =>
	to.startsWith(SIGNAL_GROUP) ? { groupId: to.slice(SIGNAL_GROUP.length) } : { recipient: [to] };
