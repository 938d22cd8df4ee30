/**
 * Attachments: parts and, if enabled, reasoning. Each is its own message without source positions; its nonce derives from the log offset, so
 * a restart never sends it twice.
 */

import type { WireAttachment } from "@nexus-stream/adapter/host";
import type { Delivery, DeliveryMessage } from "../../../ledger/deliveries/port.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import type { SourceEvent, SourcePartEvent } from "../source.ts";
import { attachmentNonce, isAttachmentNonce } from "./attachment-nonce.ts";
import { contentOf } from "./part-content.ts";

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
