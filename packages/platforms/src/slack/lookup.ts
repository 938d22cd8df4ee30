/** Looks for a message that may have been written, in what Slack says a chat holds. */

import type { KeptMessage, MessageMatch } from "@nexus-stream/adapter/memory/sent";
import { cannotTell } from "@nexus-stream/adapter/platform/platform-error";

/** The kind of our message metadata; its payload carries the nonce. */
const EVENT_TYPE = "nexus_message";

export const metadataOf = (nonce: string) => ({ event_type: EVENT_TYPE, event_payload: { nonce } });

export interface SlackHistoryMessage {
	ts?: string;
	user?: string;
	bot_id?: string;
	text?: string;
	files?: readonly unknown[];
	metadata?: { event_type?: string; event_payload?: { nonce?: unknown } };
}

export interface LookupQuestion {
	nonce: string;
	/** The message's text, as far as it is known. */
	text: string;
	/** The message may have been begun as a stream, which carries its nonce only once it has ended. */
	streamed: boolean;
	/** For a message without a nonce: decides whether the call with this nonce can have created it. */
	verdictOn(message: SlackHistoryMessage): MessageMatch;
}

/** A message's id is its time in seconds; behind the point it is only a number. */
export const keptOf = ({ ts = "" }: SlackHistoryMessage): KeptMessage => ({
	ids: [ts],
	ts: Number.parseInt(ts, 10) * 1000 || 0,
});

/** `ours`: our own messages. Undefined: it is certainly not among these. Throws when that cannot be told. */
export function lookUp(ours: readonly SlackHistoryMessage[], question: LookupQuestion): string | undefined {
	const named = ours.find((message) => nonceIn(message) === question.nonce);
	if (named?.ts !== undefined || !question.streamed) return named?.ts;
	const unnamed = ours.filter(
		(message) => nonceIn(message) === undefined && !message.files?.length && question.verdictOn(message) !== "other",
	);
	const [only, ...others] = unnamed;
	if (!only) return undefined;
	const isMade = question.verdictOn(only) === "made" && agree(only.text ?? "", question.text);
	if (others.length > 0 || only.ts === undefined || !isMade) {
		const ambiguous = "There are messages of ours that carry no name; whether this one is among them cannot be told.";
		throw cannotTell(ambiguous);
	}
	return only.ts;
}

const nonceIn = ({ metadata }: SlackHistoryMessage): unknown =>
	metadata?.event_type === EVENT_TYPE ? metadata.event_payload?.nonce : undefined;

/** One begins like the other, letters and digits only: markup is told differently by every call. */
function agree(stored: string, wanted: string): boolean {
	const [a, b] = [stored, wanted].map((text) => text.replace(/[^\p{L}\p{N}]/gu, "")) as [string, string];
	return a.startsWith(b) || b.startsWith(a);
}
