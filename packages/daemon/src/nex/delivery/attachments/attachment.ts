/**
 * Attachments: parts and, if enabled, reasoning. Each is its own message without source positions; its nonce derives from the log offset, so
 * a restart never sends it twice.
 */

import type { AdapterInfo, WireAttachment } from "@nexus-stream/adapter/port";
import type { Delivery, DeliveryMessage } from "../../../ledger/deliveries/port.ts";
import { base64Bytes, extensionOf } from "../../../std/content-type.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { attachmentNonce, isAttachmentNonce } from "../live-delivery.ts";
import type { SourceEvent, SourcePartEvent } from "../source.ts";

export interface DeliveryAttachment {
	nonce: string;
	text: string;
	attachments?: readonly WireAttachment[];
	/** Sent instead when the platform refuses the attachment. */
	instead?: DeliveryAttachment;
}

/** Adapters that show parts get them in the stream. So does an adapter without `send`, for which there is no other way. */
export const showsParts = ({ info: { supports } }: DeliveryContext): boolean =>
	supports.includes("parts") || !supports.includes("send");

/**
 * Adapters that show reasoning get it in the stream, and so do adapters that know only the six basic events and decide for themselves. For
 * all others each passage becomes a separate message.
 */
export const showsReasoning = (context: DeliveryContext): boolean => {
	const { info } = context;
	return showsParts(context) || info.supports.includes("reasoning") || !info.fields?.includes("intent");
};

/** The adapter gets this part in the stream. */
export const showsPart = (context: DeliveryContext, { modality }: SourcePartEvent): boolean =>
	modality === "reasoning" ? showsReasoning(context) : showsParts(context);

/** Whether the channel's configuration shows this part. */
export const isWanted = ({ reasoning, parts }: DeliveryContext, { modality }: SourcePartEvent): boolean =>
	modality === "reasoning" ? reasoning : parts;

/** The attachment of an event, if the channel shows it, with its row if it has one. */
export function wantedAttachment(
	context: DeliveryContext,
	{ event, offset }: SourceEvent,
): { attachment: DeliveryAttachment; row: DeliveryMessage | undefined } | undefined {
	if (event.type !== "part" || !isWanted(context, event)) return undefined;
	const attachment = attachmentOf(context, event, offset);
	if (!attachment) return undefined;
	const { messages } = context.live.row;
	const row = messages.find(({ nonce }) => nonce === attachment.nonce || nonce === attachment.instead?.nonce);
	return { attachment, row };
}

/** The attachment of an event, if it was not sent yet. */
export function unsentAttachment(context: DeliveryContext, event: SourceEvent): DeliveryAttachment | undefined {
	const wanted = wantedAttachment(context, event);
	return wanted?.row ? undefined : wanted?.attachment;
}

export function attachmentOf(
	{ live, info }: DeliveryContext,
	part: SourcePartEvent,
	offset: number,
): DeliveryAttachment | undefined {
	const content = contentOf(part, offset, info);
	if (!content) return undefined;
	const { text, attachment, instead } = content;
	return {
		nonce: attachmentNonce(live.id, offset, ""),
		text,
		attachments: attachment && [attachment],
		instead: instead === undefined ? undefined : { nonce: attachmentNonce(live.id, offset, "!"), text: instead },
	};
}

/**
 * The error text of a failed answer, for adapters that stream without positions: the ranges of their messages mean nothing, so the error text
 * is recognised by its nonce. No part of an answer has offset 0.
 */
export function errorAttachment({ live, info, options }: DeliveryContext): DeliveryAttachment | undefined {
	const isBlind = info.supports.includes("stream") && !info.fields?.includes("offset");
	return isBlind && options.errorText
		? { nonce: attachmentNonce(live.id, 0, "error"), text: options.errorText }
		: undefined;
}

/** The error text is not part of the source: a sent message with an empty range is the error text. */
export const isErrorSent = ({ messages }: Delivery): boolean =>
	messages.some(
		({ from, to, state, nonce, abandoned }) =>
			state === "sent" && from === to && !abandoned && !isAttachmentNonce(nonce),
	);

export interface PartContent {
	/** Markdown; empty when the file is enough. */
	text: string;
	attachment?: WireAttachment;
	/** Sent instead when the platform refuses the file. */
	instead?: string;
}

/** A line to an adapter holds 4 MiB, and base64 takes a third more. */
const ATTACHMENT_BYTES_MAX = 2_500_000;

/** `offset`, the part's place in the log, makes file names unique. Undefined when there is nothing to show. */
export function contentOf(part: SourcePartEvent, offset: number, info: AdapterInfo): PartContent | undefined {
	const { modality, payload } = part;
	if (modality === "reasoning") return /\S/.test(payload) ? { text: quotedReasoning(payload) } : undefined;
	if (modality === "card" || modality === "carousel") return { text: cardsText(payload) ?? `[${modality}]` };
	return fileContent(fileOf(part, offset), info);
}

/** A quote with a title, which every platform sets apart from the answer. ASCII only: another character would double the cost of an SMS. */
const quotedReasoning = (text: string): string => `> *Thinking*  \n${text.trim().replace(/^/gm, "> ")}`;

interface FilePart {
	kind: string;
	name: string;
	contentType: string;
	/** Base64. */
	data?: string;
	url?: string;
}

function fileContent({ kind, name, contentType, data, url }: FilePart, info: AdapterInfo): PartContent {
	const label = `${kind}: ${escaped(name)}`;
	if (url !== undefined) return { text: `[${escaped(name)}](<${url}>)` };
	if (data === undefined) return { text: `[${label}]` };
	const bytes = base64Bytes(data);
	const { attachmentBytesMax = ATTACHMENT_BYTES_MAX } = info.limits;
	if (!info.supports.includes("attachments")) return { text: `[${label}]` };
	if (bytes > Math.min(attachmentBytesMax, ATTACHMENT_BYTES_MAX)) {
		return { text: `[${label}, ${(bytes / 1_000_000).toFixed(1)} MB: too large to be sent here]` };
	}
	return { text: "", attachment: { name, contentType, data }, instead: `[${label}: refused by ${info.channel}]` };
}

const BASE64 = /^[A-Za-z0-9+/_=\s-]*$/;
const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*),([\s\S]*)$/;

/** The payload is base64 as the protocol says, a URL, a data URL, SVG text, or JSON with one of these and a name. */
function fileOf({ modality, contentType, payload }: SourcePartEvent, offset: number): FilePart {
	const json = payload.trimStart().startsWith("{") ? record(payload) : undefined;
	const source = json ? (text(json.url) ?? text(json.data) ?? text(json.src) ?? "") : payload.trim();
	const stated = text(json?.contentType) ?? text(json?.content_type) ?? contentType;
	const [, dataType, flags = "", body = ""] = DATA_URL.exec(source) ?? [];
	const type = (dataType || stated).split(";")[0]?.trim().toLowerCase() || "application/octet-stream";
	const own = text(json?.name) ?? text(json?.filename);
	const name = (own ?? `${modality}-${offset}.${extensionOf(type)}`).replace(/[\p{Cc}/\\]/gu, "_").slice(0, 100);
	const file: FilePart = { kind: modality, name, contentType: type };
	if (/^https?:\/\/\S+$/i.test(source)) return { ...file, url: source.replace(/[<>]/g, encodeURIComponent) };
	if (dataType !== undefined) return { ...file, data: /;base64$/i.test(flags) ? base64(body) : fromUrl(body) };
	if (source.startsWith("<") && type === "image/svg+xml")
		return { ...file, data: Buffer.from(source).toString("base64") };
	return BASE64.test(source) && source !== "" ? { ...file, data: base64(source) } : file;
}

const base64 = (data: string): string => Buffer.from(data, "base64").toString("base64");

/** Percent signs that are not part of an escape stay as they are. */
const fromUrl = (body: string): string =>
	Buffer.from(
		body.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16))),
		"latin1",
	).toString("base64");

const CARDS_MAX = 50;

/** Title, price, text and link of each card; undefined when the payload has no cards. */
function cardsText(payload: string): string | undefined {
	const value = record(payload);
	const list = value?.items ?? value?.cards ?? value;
	const cards = (Array.isArray(list) ? list : [list]).slice(0, CARDS_MAX).flatMap((card) => cardText(card) ?? []);
	return cards.length === 0 ? undefined : cards.join("\n\n");
}

function cardText(value: unknown): string | undefined {
	if (typeof value !== "object" || value === null) return undefined;
	const card = value as Record<string, unknown>;
	const title = text(card.title) ?? text(card.name);
	if (title === undefined) return undefined;
	const url = text(card.url);
	const head =
		url && /^https?:\/\/\S+$/i.test(url)
			? `**[${escaped(title)}](<${url.replace(/[<>]/g, encodeURIComponent)}>)**`
			: `**${escaped(title)}**`;
	const price = text(card.price);
	const more = [text(card.subtitle), text(card.description) ?? text(card.text)].flatMap((line) =>
		line ? [escaped(line)] : [],
	);
	return [price ? `${head} - ${escaped(price)}` : head, ...more].join("  \n");
}

function record(payload: string): Record<string, unknown> | undefined {
	try {
		const value: unknown = JSON.parse(payload);
		if (Array.isArray(value)) return { items: value };
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
	} catch {
		// Not JSON: only the kind of the card is shown.
		return undefined;
	}
}

function text(value: unknown): string | undefined {
	if (typeof value === "number") return String(value);
	return typeof value === "string" && value !== "" ? value : undefined;
}

/** Escapes text of a part, so that it is not read as markdown. */
const escaped = (text: string): string => text.replace(/\s+/g, " ").replace(/[\\`*_~[\]<>|#]/g, "\\$&");
