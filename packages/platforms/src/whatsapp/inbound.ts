/** Reads messages and the statuses of our messages from WhatsApp's webhook. */

import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import { heard } from "../heard.ts";
import type { GraphError } from "./faults.ts";

export interface WhatsAppFile extends RemoteFile {
	mediaId: string;
}

export interface WhatsAppStatus {
	messageId: string;
	to: string;
	status: string;
	/** The biz_opaque_callback_data of our message. */
	nonce: string | undefined;
	errors: readonly GraphError[];
}

interface WhatsAppMedia {
	id: string;
	mime_type?: string;
	caption?: string;
	filename?: string;
}

interface WireMessage {
	id: string;
	/** The number. People who go by a username may hide it; WhatsApp then names them by an id that is good for this business only. */
	from?: string;
	from_user_id?: string;
	timestamp: string;
	type: string;
	group_id?: string;
	text?: { body?: string };
	image?: WhatsAppMedia;
	video?: WhatsAppMedia;
	audio?: WhatsAppMedia;
	document?: WhatsAppMedia;
	sticker?: WhatsAppMedia;
	button?: { text?: string };
	interactive?: { button_reply?: { title?: string }; list_reply?: { title?: string } };
	location?: { latitude: number; longitude: number; name?: string; address?: string };
	contacts?: readonly { name?: { formatted_name?: string }; phones?: readonly { phone?: string }[] }[];
}

interface Value {
	metadata?: { phone_number_id?: string };
	contacts?: readonly { wa_id?: string; user_id?: string; profile?: { name?: string } }[];
	messages?: readonly WireMessage[];
	statuses?: readonly {
		id: string;
		recipient_id?: string;
		recipient_user_id?: string;
		status: string;
		biz_opaque_callback_data?: string;
		errors?: readonly GraphError[];
	}[];
}

/** Meta tries to deliver for seven days; what is older is a copy of an earlier request. */
export const REPLAY_WINDOW_MS = 7 * 24 * 3_600_000;

/** One request may bring several messages, of several numbers. */
export function readPayload(
	payload: unknown,
	phoneNumberId: string,
	now: number,
): { inbound: MessageWithFiles<WhatsAppFile>[]; statuses: WhatsAppStatus[] } {
	const values = valuesOf(payload).filter(({ metadata }) => metadata?.phone_number_id === phoneNumberId);
	return {
		inbound: values.flatMap((value) =>
			(value.messages ?? []).flatMap((message) => readMessage(message, value, now) ?? []),
		),
		statuses: values.flatMap(({ statuses = [] }) =>
			statuses.map((status) => ({
				messageId: status.id,
				to: status.recipient_id ?? status.recipient_user_id ?? "",
				status: status.status,
				nonce: status.biz_opaque_callback_data,
				errors: status.errors ?? [],
			})),
		),
	};
}

function valuesOf(payload: unknown): Value[] {
	const { object, entry } = (payload ?? {}) as {
		object?: string;
		entry?: readonly { changes?: readonly { field?: string; value?: Value }[] }[];
	};
	if (object !== "whatsapp_business_account") return [];
	const changes = (entry ?? []).flatMap((each) => each.changes ?? []);
	return changes.flatMap(({ field, value }) => (field === "messages" && value ? [value] : []));
}

/** Undefined: nothing a person said to the agent (reactions, changes of number, groups). */
function readMessage(message: WireMessage, value: Value, now: number): MessageWithFiles<WhatsAppFile> | undefined {
	const ts = Number(message.timestamp) * 1000;
	if (message.group_id !== undefined || now - ts > REPLAY_WINDOW_MS) return undefined;
	const from = message.from ?? message.from_user_id;
	if (from === undefined) return undefined;
	const name = value.contacts?.find(({ wa_id, user_id }) => wa_id === from || user_id === from)?.profile?.name;
	return heard([textOf(message)], filesOf(message), {
		eventId: message.id,
		from: { id: from, name: name || undefined },
		chat: { id: from, type: "direct" },
		// Typing is shown in answer to a message.
		target: { to: from, reply_to: message.id, direct: true },
		ts,
	});
}

function textOf(message: WireMessage): string {
	const { text, button, interactive, location, contacts } = message;
	if (text) return text.body ?? "";
	if (button) return button.text ?? "";
	if (interactive) return interactive.button_reply?.title ?? interactive.list_reply?.title ?? "";
	if (location) {
		const named = [location.name, location.address].filter(Boolean).join(", ");
		return `[location ${location.latitude}, ${location.longitude}${named ? ` ${named}` : ""}]`;
	}
	if (contacts) {
		const lines = contacts.map(({ name, phones }) =>
			`${name?.formatted_name ?? ""} ${phones?.[0]?.phone ?? ""}`.trim(),
		);
		return lines.map((line) => `[contact ${line}]`).join("\n");
	}
	return mediaOf(message)?.media.caption ?? "";
}

const KINDS = ["image", "video", "audio", "document", "sticker"] as const;

function mediaOf(message: WireMessage): { kind: (typeof KINDS)[number]; media: WhatsAppMedia } | undefined {
	for (const kind of KINDS) {
		const media = message[kind];
		if (media) return { kind, media };
	}
	return undefined;
}

function filesOf(message: WireMessage): WhatsAppFile[] {
	const found = mediaOf(message);
	if (!found) return [];
	const { kind, media } = found;
	// "audio/ogg; codecs=opus"
	const contentType = media.mime_type?.split(";")[0]?.trim() ?? "application/octet-stream";
	const ending = contentType.split("/")[1]?.replace(/[^\w]/g, "") || "bin";
	return [{ mediaId: media.id, contentType, name: media.filename ?? `${kind}.${ending}` }];
}
