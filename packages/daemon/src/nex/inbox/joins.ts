/** Which messages may join a run under way, and what commits when they do (A26). */

import { isSameChat } from "@nexus-stream/platforms";
import type { Joining } from "../../broker/broker.ts";
import { inboxWrites } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import { narrows } from "../access/rights.ts";
import { type InboxMessage, rightsTogether } from "./message.ts";
import type { SessionLane } from "./queue.ts";

/** What one look into the inbox hands over. */
const AT_ONCE_MAX = 16;

/**
 * What a run may do was decided for those who asked it (A10): nobody else's words may run with it, not even somebody's who may do more. So a
 * message joins only a run that answers the same person, as the same agent, in the same chat. A reload of the config may have taken rights
 * from that person since the run began: what they say now waits for a run of its own.
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

/** Where the answer goes. */
function isSameDestination({ origin, facts }: InboxMessage, other: InboxMessage): boolean {
	if (facts.agent !== other.facts.agent || origin.channel !== other.origin.channel) return false;
	const { target } = facts;
	if (!target || !other.facts.target) return target === other.facts.target;
	return origin.account === other.origin.account && isSameChat(origin.channel, target, other.facts.target);
}

/** Those of the lane that may join the run now, oldest first. A summary has several authors. */
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
