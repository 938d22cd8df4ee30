/**
 * What stands beside the text: parts and, where a channel wants it, reasoning. Each is a message of its own without source positions. Its
 * nonce comes from where it is in the log, so whatever dies when, the row tells which of them are out: each is sent once.
 */

import type { WireAttachment } from "@nexus-stream/adapter/host";
import type { Delivery, DeliveryMessage } from "../../../ledger/ledger.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import type { SourceEvent, SourcePartEvent } from "../source.ts";
import { attachmentNonce, isAttachmentNonce } from "./attachment-nonce.ts";
import { contentOf } from "./part-content.ts";

export interface DeliveryAttachment {
	nonce: string;
	text: string;
	attachments?: readonly WireAttachment[];
	/** Said in its place when the platform refuses it. */
	instead?: DeliveryAttachment;
}

/** Adapters that show parts themselves hear of them in the stream; one that cannot send cannot be helped. */
export const showsParts = ({ info: { supports } }: DeliveryContext): boolean =>
	supports.includes("parts") || !supports.includes("send");

/**
 * Adapters that show reasoning, or that speak only the six events, where what becomes of a `reasoning` line is the adapter's affair, hear
 * of it in the stream. For the others each passage is a message beside the text.
 */
export const showsReasoning = (context: DeliveryContext): boolean => {
	const { info } = context;
	return showsParts(context) || info.supports.includes("reasoning") || !info.fields?.includes("intent");
};

/** The adapter hears of it in the stream. */
export const showsPart = (context: DeliveryContext, { modality }: SourcePartEvent): boolean =>
	modality === "reasoning" ? showsReasoning(context) : showsParts(context);

/** Whether a channel wants to see a part. */
export const isWanted = ({ reasoning, parts }: DeliveryContext, { modality }: SourcePartEvent): boolean =>
	modality === "reasoning" ? reasoning : parts;

/** The message that an event is, if the channel wants it, and its row once it has one. */
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

/** The message that an event is, if it is one that is owed. */
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
 * The text that says that an answer failed, for adapters that stream without positions: their messages have ranges that say nothing, so it is
 * known by its nonce. No part of an answer stands at offset 0.
 */
export function errorAttachment({ live, info, options }: DeliveryContext): DeliveryAttachment | undefined {
	const isBlind = info.supports.includes("stream") && !info.fields?.includes("offset");
	return isBlind && options.errorText
		? { nonce: attachmentNonce(live.id, 0, "error"), text: options.errorText }
		: undefined;
}

/** The text that says that an answer failed is no part of the source either; it is said once. */
export const isErrorSent = ({ messages }: Delivery): boolean =>
	messages.some(
		({ from, to, state, nonce, abandoned }) =>
			state === "sent" && from === to && !abandoned && !isAttachmentNonce(nonce),
	);
