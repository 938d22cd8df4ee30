/** One session as a person sees it, as a value: its turns, what is on its way, what waits, and how the connection is. */

import type { LinkPhase } from "@nexus-stream/client";
import {
	type ApprovalJson,
	type EventJson,
	type MessageAccepted,
	type MessageJson,
	type PhaseJson,
	type QueuedJson,
	type RunJson,
	type RunView,
	shownOf,
	type TurnsJson,
} from "@nexus-stream/protocol";
import { openAsksOf } from "./approvals.ts";
import { type Writer, writerOf } from "./writer.ts";

/** One run: what the ledger says about it, and what its frames show. Frames win: they carry more. */
export interface TurnItem {
	readonly runId: string;
	readonly row?: RunJson;
	/** Without hidden words. */
	readonly view?: RunView;
	/** The person asked to stop it. */
	readonly stopping?: boolean;
	/** Why it could not be stopped. */
	readonly stopError?: string | undefined;
}

/** A message of this tab, until a run shows it. */
export interface OutgoingMessage {
	/** The idempotency key: sending again with it is safe. */
	readonly key: string;
	readonly text: string;
	readonly state: "sending" | "failed" | "queued" | "started";
	readonly eventId?: string;
	readonly runId?: string;
	readonly error?: string;
	/** Somebody else wrote it. */
	readonly writer?: Writer | undefined;
	/** While the daemon has not answered: the messages that it had told of before. */
	readonly seenBefore?: readonly string[] | undefined;
}

export interface ChatState {
	readonly session: string;
	readonly phase: "loading" | "ready" | "failed";
	readonly error?: string;
	/** Oldest first. */
	readonly turns: readonly TurnItem[];
	readonly older: "none" | "some" | "loading";
	readonly outgoing: readonly OutgoingMessage[];
	/** Waiting at the daemon, whichever tab they came from. */
	readonly queued: readonly QueuedJson[];
	/** What became of the newest messages, by event id. */
	readonly events: Readonly<Record<string, EventJson>>;
	readonly link: LinkPhase;
	/** The link was live before: only then is a new try a "reconnect". */
	readonly wasLive: boolean;
	/** What the session works on, where its engine knows phases. */
	readonly works?: PhaseJson;
	/** What became of questions that their run's frames leave open, by run and id. */
	readonly decisions: Readonly<Record<string, ApprovalJson>>;
}

export type ChatAction =
	| { type: "loaded"; page: TurnsJson; limit: number }
	| { type: "missing" }
	/** The place to go on from is gone; history is read anew. */
	| { type: "start-over" }
	| { type: "load-failed"; message: string }
	| { type: "older-loading" }
	| { type: "older-failed" }
	| { type: "older"; page: TurnsJson; limit: number }
	| { type: "views"; views: readonly RunView[] }
	| { type: "row"; row: RunJson }
	| { type: "queue"; queued: readonly QueuedJson[] }
	| { type: "events"; events: readonly EventJson[] }
	| { type: "sending"; key: string; text: string }
	| { type: "sent"; key: string; accepted: MessageAccepted }
	| { type: "send-failed"; key: string; message: string }
	| { type: "discard"; key: string }
	| { type: "stopping"; runId: string; on: boolean; error?: string }
	| { type: "works"; works: PhaseJson }
	| { type: "decisions"; approvals: readonly ApprovalJson[] }
	| { type: "link"; phase: LinkPhase };

export const newChat = (session: string): ChatState => ({
	session,
	phase: "loading",
	turns: [],
	older: "none",
	outgoing: [],
	queued: [],
	events: {},
	decisions: {},
	link: "stopped",
	wasLive: false,
});

export function reduceChat(chat: ChatState, action: ChatAction): ChatState {
	switch (action.type) {
		case "loaded":
			return loaded(chat, action.page, action.limit);
		case "missing":
			return { ...chat, phase: "ready" };
		case "start-over":
			return startOver(chat);
		case "load-failed":
			return { ...chat, phase: "failed", error: action.message };
		case "older-loading":
			return { ...chat, older: "loading" };
		case "older-failed":
			return { ...chat, older: "some" };
		case "older":
			return withOlder(chat, action.page, action.limit);
		case "views":
			return action.views.reduce(withView, chat);
		case "row":
			return settleOutgoing(continued(putTurn(chat, action.row.run_id, { row: action.row }), action.row), action.row);
		case "works":
			return { ...chat, works: action.works };
		case "decisions":
			return { ...chat, decisions: Object.fromEntries(action.approvals.map((row) => [decisionKey(row), row])) };
		case "queue":
			return { ...chat, queued: action.queued };
		case "events":
			return withEvents(chat, action.events);
		case "sending":
			return sending(chat, action.key, action.text);
		case "sent":
			return sent(chat, action.key, action.accepted);
		case "send-failed":
			return patchOutgoing(chat, action.key, { state: "failed", error: action.message, seenBefore: undefined });
		case "discard":
			return { ...chat, outgoing: chat.outgoing.filter(({ key }) => key !== action.key) };
		case "stopping":
			return putTurn(chat, action.runId, { stopping: action.on, stopError: action.error });
		case "link":
			return { ...chat, link: action.phase, wasLive: chat.wasLive || action.phase === "live" };
		default:
			return action satisfies never;
	}
}

function loaded(chat: ChatState, page: TurnsJson, limit: number): ChatState {
	const rows = page.live ? [...page.turns, page.live] : page.turns;
	const known = new Map(chat.turns.map((turn) => [turn.runId, turn]));
	const turns = rows.map((row) => ({ ...known.get(row.run_id), runId: row.run_id, row }));
	const older = page.turns.length >= limit ? "some" : "none";
	const { error: _, ...rest } = chat;
	return rows.reduce(settleOutgoing, { ...rest, phase: "ready", turns, queued: page.queued, older });
}

/** What the daemon accepted is its to tell from here on, and with other data it knows nothing of it. */
function startOver(chat: ChatState): ChatState {
	return { ...chat, outgoing: chat.outgoing.filter(({ eventId }) => eventId === undefined), events: {} };
}

function withOlder(chat: ChatState, page: TurnsJson, limit: number): ChatState {
	const known = new Set(chat.turns.map((turn) => turn.runId));
	const fresh = page.turns.filter((row) => !known.has(row.run_id)).map((row) => ({ runId: row.run_id, row }));
	return { ...chat, turns: [...fresh, ...chat.turns], older: page.turns.length >= limit ? "some" : "none" };
}

function withView(chat: ChatState, view: RunView): ChatState {
	return view.runId === undefined ? chat : putTurn(chat, view.runId, { view: shownOf(view) });
}

/** Changes a turn, or appends it: a run that is not known yet is the newest. */
function putTurn(chat: ChatState, runId: string, change: Partial<TurnItem>): ChatState {
	const index = chat.turns.findLastIndex((turn) => turn.runId === runId);
	if (index < 0) return { ...chat, turns: [...chat.turns, { ...change, runId }] };
	return { ...chat, turns: chat.turns.with(index, { ...chat.turns[index], ...change, runId }) };
}

/** The run that it goes on with cannot be continued a second time. */
function continued(chat: ChatState, { run_id: runId, continues }: RunJson): ChatState {
	const row = chat.turns.find((turn) => turn.runId === continues)?.row;
	if (continues === undefined || !row) return chat;
	return putTurn(chat, continues, { row: { ...row, can_continue: false, continued_by: runId } });
}

const decisionKey = ({ run_id: runId, id }: Pick<ApprovalJson, "run_id" | "id">): string => `${runId} ${id}`;

/** What became of the questions of a run that has ended without an answer to them. */
export const decisionsOf = (chat: ChatState, { runId, view }: TurnItem): ApprovalJson[] =>
	view?.final ? openAsksOf(view).flatMap(({ id }) => chat.decisions[decisionKey({ run_id: runId, id })] ?? []) : [];

/** The frames of an ended run leave a question open: only the daemon knows what became of it. */
export const hasLooseEnds = ({ turns }: ChatState): boolean =>
	turns.some(({ view }) => view?.final && openAsksOf(view).length > 0);

/** A run that shows a message makes the local copy of it unnecessary. */
function settleOutgoing(chat: ChatState, row: RunJson): ChatState {
	const shown = new Set(row.messages.map((message) => message.event_id));
	return {
		...chat,
		outgoing: chat.outgoing.filter((mine) => mine.eventId === undefined || !shown.has(mine.eventId)),
		queued: chat.queued.filter((waiting) => !shown.has(waiting.event_id)),
	};
}

function sending(chat: ChatState, key: string, text: string): ChatState {
	const toldBefore = eventsOf(chat).map(({ eventId }) => eventId);
	if (chat.outgoing.some((mine) => mine.key === key)) {
		return patchOutgoing(chat, key, { state: "sending", seenBefore: toldBefore });
	}
	return { ...chat, outgoing: [...chat.outgoing, { key, text, state: "sending", seenBefore: toldBefore }] };
}

/** The messages that the daemon tells of: in turns, and waiting for theirs. */
function eventsOf({ turns, queued }: ChatState): { eventId: string; text: string }[] {
	const shown = turns.flatMap(({ row }) => row?.messages ?? []);
	return [...shown, ...queued].flatMap(({ event_id: eventId, text }) =>
		eventId === undefined ? [] : [{ eventId, text }],
	);
}

/**
 * Messages that the daemon already tells of, while the answer to their own POST is still on its way: each is shown once. Until the answer
 * names the event, the text has to do.
 */
function overtakenOf(chat: ChatState): ReadonlySet<OutgoingMessage> {
	const own = new Set(chat.outgoing.map(({ eventId }) => eventId));
	const unclaimed = eventsOf(chat).filter(({ eventId }) => !own.has(eventId));
	const overtaken = chat.outgoing.filter(({ state, text, seenBefore: toldBefore = [] }) => {
		if (state !== "sending") return false;
		const at = unclaimed.findIndex((told) => told.text === text && !toldBefore.includes(told.eventId));
		if (at >= 0) unclaimed.splice(at, 1);
		return at >= 0;
	});
	return new Set(overtaken);
}

function sent(chat: ChatState, key: string, accepted: MessageAccepted): ChatState {
	const { event_id: eventId, run_id: runId } = accepted;
	// The run may have been faster than the answer that announces it.
	const row = chat.turns.find((turn) => turn.row?.messages.some((message) => message.event_id === eventId));
	if (row) return reduceChat(chat, { type: "discard", key });
	const waits = runId === undefined;
	const state = waits ? "queued" : "started";
	return patchOutgoing(chat, key, { state, eventId, ...(!waits && { runId }), seenBefore: undefined });
}

/** A message that no run will answer has its place in the thread: it waits no longer. */
function withEvents(chat: ChatState, rows: readonly EventJson[]): ChatState {
	const events = { ...chat.events, ...Object.fromEntries(rows.map((row) => [row.event_id, row])) };
	const outgoing = chat.outgoing.filter(({ eventId }) => !(eventId && isSidelined(events[eventId])));
	return { ...chat, events, outgoing };
}

const SIDELINED: ReadonlySet<EventJson["disposition"]> = new Set(["dropped", "rejected", "superseded", "cancelled"]);

const isSidelined = (event: EventJson | undefined): boolean =>
	event !== undefined && event.batch === undefined && SIDELINED.has(event.disposition);

function patchOutgoing(chat: ChatState, key: string, change: Partial<OutgoingMessage>): ChatState {
	return { ...chat, outgoing: chat.outgoing.map((mine) => (mine.key === key ? { ...mine, ...change } : mine)) };
}

/** The user's messages of a turn: the ledger's, or this tab's own until the ledger's are here. */
export function userMessagesOf(chat: ChatState, turn: TurnItem): readonly MessageJson[] {
	const rows = turn.row?.messages.filter((message) => message.role === "user");
	if (rows && rows.length > 0) return rows;
	return chat.outgoing.filter((mine) => mine.runId === turn.runId).map(({ text }) => ({ role: "user", text }));
}

/** What is not part of a turn yet, in the order it will be. */
export function waitingOf(chat: ChatState): readonly OutgoingMessage[] {
	const known = new Set(chat.turns.map((turn) => turn.runId));
	const overtaken = overtakenOf(chat);
	const mine = chat.outgoing.filter(
		(each) => !overtaken.has(each) && (each.runId === undefined || !known.has(each.runId)),
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

export function isLive(turn: TurnItem): boolean {
	return turn.view ? !turn.view.final : turn.row !== undefined && isUnsettled(turn.row);
}

const isUnsettled = ({ status }: RunJson): boolean => status === "running" || status === "stopping";

/** The runs whose end was seen, while what the ledger says of it could not be read. */
export const unreadRunsOf = (chat: ChatState): string[] =>
	chat.turns.filter(({ row, view }) => view?.final && (!row || isUnsettled(row))).map(({ runId }) => runId);

export const liveTurnOf = (chat: ChatState): TurnItem | undefined => chat.turns.findLast(isLive);

export type ThreadItem =
	/** `retries`: an earlier turn shows its messages. */
	| { readonly kind: "turn"; readonly turn: TurnItem; readonly retries: boolean }
	/** A message that no run shows. */
	| { readonly kind: "aside"; readonly event: EventJson };

/** The turns, and between them the messages that never became part of one, in order of time. */
export function threadOf(chat: ChatState): ThreadItem[] {
	const shown = new Set(chat.turns.flatMap(({ row }) => row?.messages.map((message) => message.event_id) ?? []));
	const oldest = chat.older === "none" ? 0 : (startOf(chat.turns[0]) ?? 0);
	const asides = Object.values(chat.events)
		.filter((event) => isSidelined(event) && !shown.has(event.event_id) && event.received_at >= oldest)
		.toSorted((one, other) => one.received_at - other.received_at);
	const items: ThreadItem[] = [];
	const before = new Set<string>();
	for (const turn of chat.turns) {
		const start = startOf(turn);
		while (asides[0] && start !== undefined && asides[0].received_at < start)
			items.push({ kind: "aside", event: asides.shift()! });
		const asked = askedIn(turn);
		items.push({ kind: "turn", turn, retries: asked.length > 0 && asked.every((eventId) => before.has(eventId)) });
		for (const eventId of asked) before.add(eventId);
	}
	return [...items, ...asides.map((event): ThreadItem => ({ kind: "aside", event }))];
}

const askedIn = ({ row }: TurnItem): string[] => row?.messages.flatMap(({ event_id: eventId }) => eventId ?? []) ?? [];

const startOf = (turn: TurnItem | undefined): number | undefined => turn?.row?.started_at ?? turn?.view?.startedAt;
