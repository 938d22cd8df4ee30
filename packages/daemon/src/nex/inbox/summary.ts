/** Summarises messages that were dropped at the queue's cap in one line. Pure, and without a model, because it must work under full load. */

import { clip } from "../../std/clip.ts";
import { destinationsOf, hasOthers, type InboxMessage, isFromGroup, rightsTogether } from "./message.ts";
import { batchIdOf } from "./queue.ts";

/** Characters of each message that the summary keeps. */
const MESSAGE_CHARS_MAX = 60;
/** Length of the summary; messages that do not fit are only counted. */
const LINE_CHARS_MAX = 1200;

/** The synthetic event that replaces the messages. It lists their ids, waits like the newest of them, and is answered in all of their chats. */
export function summaryOf(eventId: string, events: readonly InboxMessage[]): InboxMessage {
	const newest = events.at(-1)!;
	const batch = events.flatMap((event) => event.batch ?? [event.eventId]);
	return { ...standIn(newest, eventId), text: line(events, batch.length), batch, facts: factsOf(events, newest) };
}

/** The summary contains text of all senders, so it has only the rights that all of them have (A10). */
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

/** The synthetic event of several messages that become one run. The run still gets every message. */
export function batchOf(events: readonly InboxMessage[], now: number): InboxMessage {
	const newest = events.at(-1)!;
	const { queue: _queue, ...event } = standIn(newest, batchIdOf(newest.eventId));
	return { ...event, receivedAt: now, batch: events.map((one) => one.eventId) };
}

/** An empty event of the same chat and sender, without the platform's message id. */
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
	// The newest messages are the most relevant.
	for (const quote of quotes.toReversed()) {
		room -= quote.length + SEPARATOR.length;
		if (room < 0) break;
		kept.unshift(quote);
	}
	return `${HEAD(count)}${kept.join(SEPARATOR)}`;
}

const SEPARATOR = " · ";
const HEAD = (count: number) => `[${count} earlier messages, shortened] `;

/** The quotes in an earlier summary. */
const quotesIn = (text: string): string[] => text.slice(text.indexOf("] ") + 2).split(SEPARATOR);

function quoteOf({ text, attachments }: InboxMessage): string {
	const flat = text.replace(/\s+/g, " ").replaceAll(SEPARATOR, " ").trim();
	const short = clip(flat, MESSAGE_CHARS_MAX);
	return attachments.length === 0 ? short : `${short} (+${attachments.length} attached)`.trim();
}
