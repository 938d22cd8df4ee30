/** The writes of a session's queue: for an arrival, a stopped run, and messages that join a run (A26). Pure. */

import { isSameChat } from "@nexus-stream/platforms";
import type { Joining } from "../../broker/broker.ts";
import { type Disposition, inboxWrites } from "../../ledger/inbox/port.ts";
import { type Turn, turnWrites } from "../../ledger/turns/port.ts";
import type { Write } from "../../std/write.ts";
import { narrows } from "../access/rights.ts";
import { type InboxMessage, rightsTogether } from "./message.ts";
import type { LaneEffect, SessionLane } from "./queue.ts";
import { summaryOf } from "./summary.ts";

export const QUEUED = ["queued"] as const;
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
	expected: readonly Disposition["state"][],
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
	const writes = dispose(messages.map(idOf), disposition, QUEUED);
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
			writes.push(...dispose([effect.eventId], { state: "dropped", because: effect.because }, QUEUED));
			waiting = without(waiting, [effect.eventId]);
		}
		if (effect.type === "summarise") {
			const { eventIds, into } = effect;
			const summary = summaryOf(
				into,
				eventIds.map((eventId) => waiting.get(eventId)!),
			);
			writes.push(inboxWrites.accept(summary), ...dispose(eventIds, { state: "superseded", by: into }, QUEUED));
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

export const joinWrites = (messages: readonly InboxMessage[], runId: string): Write[] =>
	messages.map(({ eventId }) => inboxWrites.dispose(eventId, { state: "injected", runId }, ["queued"]));
