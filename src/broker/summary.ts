/** Messages that had to make room, as one line. Pure, and without a model: it must work when everything is busy. */

import type { InboundEvent } from "../ledger/ledger.ts";

/** How much of each message the line keeps. */
const MESSAGE_CHARS_MAX = 60;
/** How long the line gets; what does not fit is counted. */
const LINE_CHARS_MAX = 1200;

/** The synthetic event that takes their place. It names them, and waits and is answered as the newest of them would be. */
export function summaryOf(eventId: string, events: readonly InboundEvent[]): InboundEvent {
	const newest = events.at(-1)!;
	const batch = events.flatMap((event) => event.batch ?? [event.eventId]);
	const { session, receivedAt, origin, queue, facts, traceId } = newest;
	return {
		...{ eventId, session, text: line(events, batch.length), attachments: [], receivedAt, batch },
		disposition: { state: "queued" },
		...(origin && { origin: { channel: origin.channel, account: origin.account, sender: origin.sender } }),
		...(queue && { queue }),
		...(facts && { facts }),
		...(traceId !== undefined && { traceId }),
	};
}

function line(events: readonly InboundEvent[], count: number): string {
	const quotes = events.flatMap((event) => (event.batch ? quotesIn(event.text) : [quoteOf(event)]));
	const kept: string[] = [];
	let room = LINE_CHARS_MAX;
	// The newest say most about what is wanted now.
	for (const quote of quotes.toReversed()) {
		room -= quote.length + SEPARATOR.length;
		if (room < 0) break;
		kept.unshift(quote);
	}
	return `${HEAD(count)}${kept.join(SEPARATOR)}`;
}

const SEPARATOR = " · ";
const HEAD = (count: number) => `[${count} earlier messages, shortened] `;

/** What an earlier summary kept. */
const quotesIn = (text: string): string[] => text.slice(text.indexOf("] ") + 2).split(SEPARATOR);

function quoteOf({ text, attachments }: InboundEvent): string {
	const flat = text.replace(/\s+/g, " ").replaceAll(SEPARATOR, " ").trim();
	const short =
		flat.length <= MESSAGE_CHARS_MAX
			? flat
			: `${flat
					.slice(0, MESSAGE_CHARS_MAX - 1)
					.toWellFormed()
					.replace(/\uFFFD$/, "")}…`;
	return attachments.length === 0 ? short : `${short} (+${attachments.length} attached)`.trim();
}
