/** Reads a person's message from a message of BlueBubbles or imsg. */

import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import { heard } from "../heard.ts";

export interface IMessageFile extends RemoteFile {
	/** The backend's reference for fetching it. */
	reference: string;
}

export interface BlueBubblesMessage {
	originalROWID: number;
	guid: string;
	text?: string | null;
	isFromMe: boolean;
	handle?: { address?: string } | null;
	chats?: readonly { guid: string; style?: number; displayName?: string | null }[];
	attachments?: readonly {
		guid: string;
		mimeType?: string | null;
		transferName?: string | null;
		totalBytes?: number;
		hideAttachment?: boolean;
	}[];
	dateCreated?: number | null;
	dateRetracted?: number | null;
	itemType?: number;
	associatedMessageGuid?: string | null;
	error?: number;
}

/** Undefined: nothing a person said to the agent (our own, tapbacks, changes of a group). */
export function readBlueBubbles(given: BlueBubblesMessage, name: string): MessageWithFiles<IMessageFile> | undefined {
	const { guid, isFromMe, chats = [], handle, itemType = 0 } = given;
	const [chat] = chats;
	const from = handle?.address;
	if (isFromMe || itemType !== 0 || given.associatedMessageGuid || given.dateRetracted || !chat || !from)
		return undefined;
	const files = (given.attachments ?? [])
		.filter(({ hideAttachment }) => !hideAttachment)
		.map((file) => ({
			reference: file.guid,
			name: file.transferName ?? "file",
			contentType: file.mimeType ?? "application/octet-stream",
			bytes: file.totalBytes,
		}));
	const group = chat.style === 43 || chat.guid.includes(";+;");
	const facts = { id: chat.guid, group, title: chat.displayName ?? "" };
	const { text: said, dateCreated: ts } = given;
	return inbound({ guid, from: { id: from }, chat: facts, said, files, ts }, name);
}

export interface ImsgMessage {
	id: number;
	/** Where listening resumes after it; absent in earlier versions. */
	cursor?: number;
	chat_id: number;
	chat_guid: string;
	chat_name?: string;
	is_group?: boolean;
	guid: string;
	sender?: string;
	sender_name?: string;
	is_from_me: boolean;
	is_reaction?: boolean;
	text?: string;
	created_at?: string;
	attachments?: readonly {
		transfer_name?: string;
		mime_type?: string;
		byte_size?: number;
		missing?: boolean;
		path?: string;
	}[];
}

/** Undefined: nothing a person said to the agent. */
export function readImsg(given: ImsgMessage, name: string): MessageWithFiles<IMessageFile> | undefined {
	const { guid, sender, is_group: group = false } = given;
	if (given.is_from_me || given.is_reaction || !sender || !given.chat_guid) return undefined;
	const files = (given.attachments ?? []).map((file) => ({
		reference: file.missing ? "" : (file.path ?? ""),
		name: file.transfer_name ?? "file",
		contentType: file.mime_type ?? "application/octet-stream",
		bytes: file.byte_size,
	}));
	const from = { id: sender, name: given.sender_name || undefined };
	const chat = { id: given.chat_guid, group, title: given.chat_name ?? "" };
	const ts = Date.parse(given.created_at ?? "");
	const found = inbound({ guid, from, chat, said: given.text, files, ts }, name);
	// imsg finds a chat's history by its number only.
	if (found) found.message.target.chat_id = given.chat_id;
	return found;
}

interface IMessageFacts {
	guid: string;
	from: { id: string; name?: string };
	chat: { id: string; group: boolean; title: string };
	said: string | null | undefined;
	files: IMessageFile[];
	ts: number | null | undefined;
}

function inbound({ guid, from, chat: { id, group, title }, said, files, ts }: IMessageFacts, name: string) {
	// An object replacement character stands for each attachment.
	const { text, mention } = addressed((said ?? "").replaceAll("\uFFFC", "").trim(), name);
	return heard([text], files, {
		eventId: guid,
		from,
		chat: { id, type: group ? "group" : "direct", name: group && title !== "" ? title : undefined },
		mention: group ? mention : undefined,
		target: { to: id, direct: !group, reply_to: group ? guid : undefined },
		ts: ts || 0,
	});
}

/** iMessage knows no names of agents: who says ours means us, and as a form of address it is taken out. */
export function addressed(text: string, name: string): { text: string; mention: boolean } {
	if (name === "") return { text, mention: false };
	const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
	const mention = new RegExp(`(?:^|[^\\p{L}\\p{N}])@?${escaped}(?![\\p{L}\\p{N}])`, "iu").test(text);
	const call = new RegExp(`^@?${escaped}(?![\\p{L}\\p{N}])[,:]?\\s*`, "iu");
	return { text: mention ? text.replace(call, "") : text, mention };
}
