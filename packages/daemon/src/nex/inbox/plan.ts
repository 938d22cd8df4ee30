/** The writes of a session's queue: for an arrival, a summary at the cap, a stopped run, and messages that join a run (A26). Pure. */

import { isSameChat } from "@nexus-stream/platforms";
import type { Joining } from "../../broker/broker.ts";
import { type Disposition, inboxWrites } from "../../ledger/inbox/port.ts";
import { type Turn, turnWrites } from "../../ledger/turns/port.ts";
import { clip } from "../../std/clip.ts";
import type { Write } from "../../std/write.ts";
import { narrows } from "../access/acl.ts";
import { destinationsOf, hasOthers, type InboxMessage, isFromGroup, rightsTogether } from "./message.ts";
import { batchIdOf, type LaneEffect, type SessionLane } from "./queue.ts";

const QUEUED = ["queued"] as const;
const ANSWERED = ["started", "batched", "injected"] as const;

/** A session's run, from its launch until it has settled. */
export interface Active {
	/** Oldest first; those that joined it are last. */
	messages: InboxMessage[];
	/** Undefined until the run has begun. */
	runId?: string;
	abort(): void;
	stoppedBy?: { eventId: string; rollback: boolean };
}

export const idOf = ({ eventId }: InboxMessage): string => eventId;

export const dispose = (
	eventIds: readonly string[],
	disposition: Disposition,
	expected: readonly Disposition["state"][] = QUEUED,
): Write[] => eventIds.map((eventId) => inboxWrites.dispose(eventId, disposition, expected));

export function without(
	waiting: ReadonlyMap<string, InboxMessage>,
	eventIds: readonly string[],
): Map<string, InboxMessage> {
	const remaining = new Map(waiting);
	for (const eventId of eventIds) remaining.delete(eventId);
	return remaining;
}

/** The writes that commit with a run's begin. A message that was not `recorded` before gets its final disposition at once. */
export function startWrites(
	messages: readonly InboxMessage[],
	batch: InboxMessage | undefined,
	runId: string,
	recorded: boolean,
): Write[] {
	const disposition: Disposition = { state: batch ? "batched" : "started", runId };
	if (!recorded) return messages.map((message) => inboxWrites.accept({ ...message, disposition }));
	const writes = dispose(messages.map(idOf), disposition);
	return batch ? [inboxWrites.accept({ ...batch, disposition: { state: "started", runId } }), ...writes] : writes;
}

/** The writes when a run was stopped for a newer message. */
export function superseded(
	{ status, runId }: Turn,
	{ messages, stoppedBy }: Active,
	batch: InboxMessage | undefined,
): Write[] {
	if (status !== "aborted") return [];
	const eventIds = [...messages, ...(batch ? [batch] : [])].map(idOf);
	const writes = dispose(eventIds, { state: "superseded", by: stoppedBy!.eventId, runId }, ANSWERED);
	return stoppedBy!.rollback ? [turnWrites.rollBack(runId), ...writes] : writes;
}

/** The writes of an arrival, as one unit, and the messages that wait after it. */
export function plan(before: ReadonlyMap<string, InboxMessage>, message: InboxMessage, effects: readonly LaneEffect[]) {
	const writes: Write[] = [];
	let waiting = before;
	for (const effect of effects) {
		if (effect.type === "wait") {
			writes.push(inboxWrites.accept(message));
			waiting = new Map([...waiting, [message.eventId, message]]);
		}
		if (effect.type === "drop") {
			writes.push(...dispose([effect.eventId], { state: "dropped", because: effect.because }));
			waiting = without(waiting, [effect.eventId]);
		}
		if (effect.type === "summarise") {
			const { eventIds, into } = effect;
			const summary = summaryOf(
				into,
				eventIds.map((eventId) => waiting.get(eventId)!),
			);
			writes.push(inboxWrites.accept(summary), ...dispose(eventIds, { state: "superseded", by: into }));
			waiting = new Map([[into, summary], ...without(waiting, eventIds)]);
		}
	}
	return { writes, waiting };
}

/** Messages that join at once. */
const AT_ONCE_MAX = 16;

/**
 * The rights of a run are those of its senders (A10), so a message joins only a run of the same person, agent and chat; even a sender with
 * more rights cannot join another person's run. After a reload of the config that removed rights from the person, the message waits for a
 * separate run.
 */
export function mayJoin(run: readonly InboxMessage[], message: InboxMessage): boolean {
	if (narrows(rightsTogether(run), rightsTogether([message]))) return false;
	return run.some((one) => isSamePerson(one, message)) && run.some((one) => isSameDestination(one, message));
}

const isSamePerson = (one: InboxMessage, other: InboxMessage): boolean =>
	one.origin.channel === other.origin.channel &&
	one.origin.account === other.origin.account &&
	one.origin.sender === other.origin.sender &&
	one.facts.sender.owner === other.facts.sender.owner;

function isSameDestination({ origin, facts }: InboxMessage, other: InboxMessage): boolean {
	if (facts.agent !== other.facts.agent || origin.channel !== other.origin.channel) return false;
	const { target } = facts;
	if (!target || !other.facts.target) return target === other.facts.target;
	return origin.account === other.origin.account && isSameChat(origin.channel, target, other.facts.target);
}

/** The waiting messages that may join the run now, oldest first. A summary may have several authors and never joins. */
export function joiningOf(
	lane: SessionLane,
	waiting: ReadonlyMap<string, InboxMessage>,
	run: readonly InboxMessage[],
): InboxMessage[] {
	if (lane.stopping) return [];
	return lane.waiting
		.filter(({ mode, summary }) => mode === "inject" && !summary)
		.map(({ eventId }) => waiting.get(eventId)!)
		.filter((message) => mayJoin(run, message))
		.slice(0, AT_ONCE_MAX);
}

export const joined = ({ eventId, text, attachments, facts }: InboxMessage): Joining => ({
	eventId,
	text,
	attachments,
	context: facts.hooks.attached.length > 0 ? facts.hooks.attached : undefined,
});

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
