/**
 * What stands beside the text: parts and, where a channel wants it, reasoning. Each is a message of its own without source positions. Its
 * nonce comes from where it is in the log, so whatever dies when, the row tells which of them are out: each is sent once.
 */

import type { WireAttachment } from "../adapter/adapter.ts";
import type { Delivery, DeliveryMessage } from "../ledger/ledger.ts";
import { asideNonce, isAside } from "./aside-nonce.ts";
import type { DeliveryContext } from "./delivery-context.ts";
import { contentOf } from "./part-content.ts";
import type { PartEvent, SourceEvent } from "./source.ts";

export interface Aside {
	nonce: string;
	text: string;
	attachments?: readonly WireAttachment[];
	/** Said in its place when the platform refuses it. */
	instead?: Aside;
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
export const showsPart = (context: DeliveryContext, { modality }: PartEvent): boolean =>
	modality === "reasoning" ? showsReasoning(context) : showsParts(context);

/** Whether a channel wants to see a part. */
export const isWanted = ({ reasoning, parts }: DeliveryContext, { modality }: PartEvent): boolean =>
	modality === "reasoning" ? reasoning : parts;

/** The message that an event is, if the channel wants it, and its row once it has one. */
export function wantedAside(
	context: DeliveryContext,
	{ event, offset }: SourceEvent,
): { aside: Aside; known: DeliveryMessage | undefined } | undefined {
	if (event.type !== "part" || !isWanted(context, event)) return undefined;
	const aside = asideOf(context, event, offset);
	if (!aside) return undefined;
	const { messages } = context.live.row;
	const known = messages.find(({ nonce }) => nonce === aside.nonce || nonce === aside.instead?.nonce);
	return { aside, known };
}

/** The message that an event is, if it is one that is owed. */
export function owedAside(context: DeliveryContext, event: SourceEvent): Aside | undefined {
	const wanted = wantedAside(context, event);
	return wanted?.known ? undefined : wanted?.aside;
}

export function asideOf({ live, info }: DeliveryContext, part: PartEvent, offset: number): Aside | undefined {
	const content = contentOf(part, offset, info);
	if (!content) return undefined;
	const { text, attachment, instead } = content;
	return {
		nonce: asideNonce(live.id, offset, ""),
		text,
		...(attachment && { attachments: [attachment] }),
		...(instead !== undefined && { instead: { nonce: asideNonce(live.id, offset, "!"), text: instead } }),
	};
}

/**
 * The text that says that an answer failed, for adapters that stream without positions: their messages have ranges that say nothing, so it is
 * known by its nonce. No part of an answer stands at offset 0.
 */
export function errorAside({ live, info, options }: DeliveryContext): Aside | undefined {
	const isBlind = info.supports.includes("stream") && !info.fields?.includes("offset");
	return isBlind && options.errorText ? { nonce: asideNonce(live.id, 0, "error"), text: options.errorText } : undefined;
}

/** The text that says that an answer failed is no part of the source either; it is said once. */
export const isErrorSaid = ({ messages }: Delivery): boolean =>
	messages.some(
		({ from, to, state, nonce, abandoned }) => state === "sent" && from === to && !abandoned && !isAside(nonce),
	);
