/** What the decisions of a session's queue are on record as: the writes of an arrival and of a run that was stopped. Pure. */

import { type Disposition, inboxWrites, type Turn, turnWrites } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { InboxMessage } from "./message.ts";
import type { LaneEffect } from "./queue.ts";
import { summaryOf } from "./summary.ts";

export const QUEUED = ["queued"] as const;
const ANSWERED = ["started", "batched", "injected"] as const;

/** What a session's run answers, from its launch until it has settled. */
export interface Active {
	/** Oldest first; those that joined it last. */
	messages: InboxMessage[];
	/** Known once it has begun. */
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
	const left = new Map(waiting);
	for (const eventId of eventIds) left.delete(eventId);
	return left;
}

/** What a run that was stopped for a newer message leaves. */
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

/** The writes of an arrival, as one unit, and what waits after it. */
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
