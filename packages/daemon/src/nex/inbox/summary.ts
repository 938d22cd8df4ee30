/** Messages that had to make room, as one line. Pure, and without a model: it must work when everything is busy. */

import { clip } from "../../std/clip.ts";
import { destinationsOf, hasOthers, type InboxMessage, isFromGroup, rightsTogether } from "./message.ts";
import { batchIdOf } from "./queue.ts";

/** How much of each message the line keeps. */
const MESSAGE_CHARS_MAX = 60;
/** How long the line gets; what does not fit is counted. */
const LINE_CHARS_MAX = 1200;

/** The synthetic event that takes their place. It names them, waits as the newest of them would, and is answered in all of their chats. */
export function summaryOf(eventId: string, events: readonly InboxMessage[]): InboxMessage {
	const newest = events.at(-1)!;
	const batch = events.flatMap((event) => event.batch ?? [event.eventId]);
	return { ...standIn(newest, eventId), text: line(events, batch.length), batch, facts: factsOf(events, newest) };
}

/** It holds the words of all of them, so it may do what every one of their senders may (A10). */
function factsOf(events: readonly InboxMessage[], newest: InboxMessage): InboxMessage["facts"] {
	const rights = rightsTogether(events);
	return {
		...newest.facts,
		sender: { ...newest.facts.sender, owner: rights.owner },
		rights,
		summed: {
			others: hasOthers(events, newest),
			group: events.some(isFromGroup),
			chats: destinationsOf(events),
		},
	};
}

/** Several messages become one run by a synthetic event that names them; the run is told each of them all the same. */
export function batchOf(events: readonly InboxMessage[], now: number): InboxMessage {
	const newest = events.at(-1)!;
	const { queue: _queue, ...event } = standIn(newest, batchIdOf(newest.eventId));
	return { ...event, receivedAt: now, batch: events.map((one) => one.eventId) };
}

/** Of the same chat; not the platform's message itself. */
function standIn({ session, receivedAt, origin, queue, facts, traceId }: InboxMessage, eventId: string): InboxMessage {
	const { channel, account, sender } = origin;
	return {
		eventId,
		session,
		text: "",
		attachments: [],
		receivedAt,
		disposition: { state: "queued" },
		origin: { channel, account, sender },
		facts,
		queue,
		traceId,
	};
}

function line(events: readonly InboxMessage[], count: number): string {
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

function quoteOf({ text, attachments }: InboxMessage): string {
	const flat = text.replace(/\s+/g, " ").replaceAll(SEPARATOR, " ").trim();
	const short = clip(flat, MESSAGE_CHARS_MAX);
	return attachments.length === 0 ? short : `${short} (+${attachments.length} attached)`.trim();
}
