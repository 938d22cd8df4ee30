/** The thread of a session: its turns, unanswered messages, and the messages that wait, in the order in which they are shown. */

import type { EventJson, MessageJson } from "@nexus-stream/protocol/api";
import { type ChatState, eventsOf, isSidelined, type OutgoingMessage, type TurnItem } from "./chat.ts";
import { writerOf } from "./writer.ts";

/** The user's messages of a turn: from the ledger, or from this tab until the ledger's have arrived. */
export function userMessagesOf(chat: ChatState, turn: TurnItem): readonly MessageJson[] {
	const rows = turn.row?.messages.filter((message) => message.role === "user");
	if (rows && rows.length > 0) return rows;
	return chat.outgoing.filter((mine) => mine.runId === turn.runId).map(({ text }) => ({ role: "user", text }));
}

/**
 * Messages that the daemon already lists while the response to their POST is in flight: each is shown once. Until the response names the
 * event, they are matched by their text.
 */
function overtakenOf(chat: ChatState): ReadonlySet<OutgoingMessage> {
	const own = new Set(chat.outgoing.map(({ eventId }) => eventId));
	const unclaimed = eventsOf(chat).filter(({ eventId }) => !own.has(eventId));
	const overtaken = chat.outgoing.filter(({ state, text, seenBefore = [] }) => {
		if (state !== "sending") return false;
		const at = unclaimed.findIndex((event) => event.text === text && !seenBefore.includes(event.eventId));
		if (at >= 0) unclaimed.splice(at, 1);
		return at >= 0;
	});
	return new Set(overtaken);
}

/** Messages that are not part of a turn yet, in the order in which they will be. */
export function waitingOf(chat: ChatState): readonly OutgoingMessage[] {
	const shown = new Set(chat.turns.map((turn) => turn.runId));
	const overtaken = overtakenOf(chat);
	const mine = chat.outgoing.filter(
		(each) => !overtaken.has(each) && (each.runId === undefined || !shown.has(each.runId)),
	);
	const own = new Set(chat.outgoing.map(({ eventId }) => eventId));
	const foreign = chat.queued
		.filter(({ event_id }) => !own.has(event_id))
		.map(
			({ event_id, text, ...written }): OutgoingMessage => ({
				key: event_id,
				text,
				state: "queued",
				eventId: event_id,
				writer: writerOf(written),
			}),
		);
	return [...foreign, ...mine];
}

export type ThreadItem =
	/** `retries`: it answers the messages of an earlier turn again. */
	| { readonly kind: "turn"; readonly turn: TurnItem; readonly retries: boolean }
	/** A message that no run answers. */
	| { readonly kind: "unanswered"; readonly event: EventJson };

/** The turns, and between them the messages that no run answers, in order of time. */
export function threadOf(chat: ChatState): ThreadItem[] {
	const shown = new Set(chat.turns.flatMap(({ row }) => row?.messages.map((message) => message.event_id) ?? []));
	const oldest = chat.older === "none" ? 0 : (startOf(chat.turns[0]) ?? 0);
	const unanswered = Object.values(chat.events)
		.filter((event) => isSidelined(event) && !shown.has(event.event_id) && event.received_at >= oldest)
		.toSorted((one, other) => one.received_at - other.received_at);
	const items: ThreadItem[] = [];
	const before = new Set<string>();
	for (const turn of chat.turns) {
		const start = startOf(turn);
		while (unanswered[0] && start !== undefined && unanswered[0].received_at < start)
			items.push({ kind: "unanswered", event: unanswered.shift()! });
		const ids = messageIdsOf(turn);
		items.push({ kind: "turn", turn, retries: ids.length > 0 && ids.every((eventId) => before.has(eventId)) });
		for (const eventId of ids) before.add(eventId);
	}
	return [...items, ...unanswered.map((event): ThreadItem => ({ kind: "unanswered", event }))];
}

const messageIdsOf = ({ row }: TurnItem): string[] =>
	row?.messages.flatMap(({ event_id: eventId }) => eventId ?? []) ?? [];

const startOf = (turn: TurnItem | undefined): number | undefined => turn?.row?.started_at ?? turn?.view?.startedAt;
