/** One session as a value: its turns, the messages that are sent or queued, and the state of the connection. */

import type { LinkPhase } from "@nexus-stream/client";
import { type RunView, shownOf } from "@nexus-stream/protocol";
import type {
	ApprovalJson,
	EventJson,
	MessageAccepted,
	PhaseJson,
	QueuedJson,
	RunJson,
	SessionTurnsJson,
} from "@nexus-stream/protocol/api";
import { openAsksOf } from "./approvals.ts";
import type { Writer } from "./writer.ts";

/** One run: its row in the ledger and the view of its frames. The frames win, because they carry more. */
export interface TurnItem {
	readonly runId: string;
	readonly row?: RunJson;
	/** Without the hidden messages. */
	readonly view?: RunView;
	/** A stop was requested. */
	readonly stopping?: boolean;
	/** Why the stop failed. */
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
	/** Set when a person other than the owner wrote it. */
	readonly writer?: Writer | undefined;
	/** While the request is in flight: the messages that the daemon listed before it. */
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
	/** Queued at the daemon, from any client. */
	readonly queued: readonly QueuedJson[];
	/** The dispositions of the newest messages, by event id. */
	readonly events: Readonly<Record<string, EventJson>>;
	readonly link: LinkPhase;
	/** The link was live before, so a new attempt is a reconnect. */
	readonly wasLive: boolean;
	/** The phase of the session, if its engine has phases. */
	readonly works?: PhaseJson;
	/** Decisions on questions that the frames of their run leave open, by run and id. */
	readonly decisions: Readonly<Record<string, ApprovalJson>>;
}

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

export function loaded(chat: ChatState, page: SessionTurnsJson, limit: number): ChatState {
	const rows = page.live ? [...page.turns, page.live] : page.turns;
	const shown = new Map(chat.turns.map((turn) => [turn.runId, turn]));
	const turns = rows.map((row) => ({ ...shown.get(row.run_id), runId: row.run_id, row }));
	const older = page.turns.length >= limit ? "some" : "none";
	return rows.reduce(settleOutgoing, { ...chat, error: undefined, phase: "ready", turns, queued: page.queued, older });
}

/** The stream offset to resume from is gone. Drops accepted messages: the daemon lists them, and a daemon with other data has none of them. */
export function startOver(chat: ChatState): ChatState {
	return { ...chat, outgoing: chat.outgoing.filter(({ eventId }) => eventId === undefined), events: {} };
}

export function withOlder(chat: ChatState, page: SessionTurnsJson, limit: number): ChatState {
	const shown = new Set(chat.turns.map((turn) => turn.runId));
	const fresh = page.turns.filter((row) => !shown.has(row.run_id)).map((row) => ({ runId: row.run_id, row }));
	return { ...chat, turns: [...fresh, ...chat.turns], older: page.turns.length >= limit ? "some" : "none" };
}

export function withView(chat: ChatState, view: RunView): ChatState {
	return view.runId === undefined ? chat : putTurn(chat, view.runId, { view: shownOf(view) });
}

export const withRow = (chat: ChatState, row: RunJson): ChatState =>
	settleOutgoing(continued(putTurn(chat, row.run_id, { row }), row), row);

export const withLink = (chat: ChatState, link: LinkPhase): ChatState => ({
	...chat,
	link,
	wasLive: chat.wasLive || link === "live",
});

/** Changes a turn, or appends it: a run without a turn is the newest. */
export function putTurn(chat: ChatState, runId: string, change: Partial<TurnItem>): ChatState {
	const index = chat.turns.findLastIndex((turn) => turn.runId === runId);
	if (index < 0) return { ...chat, turns: [...chat.turns, { ...change, runId }] };
	return { ...chat, turns: chat.turns.with(index, { ...chat.turns[index], ...change, runId }) };
}

/** A run that was continued cannot be continued a second time. */
function continued(chat: ChatState, { run_id: runId, continues }: RunJson): ChatState {
	const row = chat.turns.find((turn) => turn.runId === continues)?.row;
	if (continues === undefined || !row) return chat;
	return putTurn(chat, continues, { row: { ...row, can_continue: false, continued_by: runId } });
}

const decisionKey = ({ run_id: runId, id }: Pick<ApprovalJson, "run_id" | "id">): string => `${runId} ${id}`;

export const withDecisions = (chat: ChatState, approvals: readonly ApprovalJson[]): ChatState => ({
	...chat,
	decisions: Object.fromEntries(approvals.map((row) => [decisionKey(row), row])),
});

/** The decisions on questions that were open when the run ended. */
export const decisionsOf = (chat: ChatState, { runId, view }: TurnItem): ApprovalJson[] =>
	view?.final ? openAsksOf(view).flatMap(({ id }) => chat.decisions[decisionKey({ run_id: runId, id })] ?? []) : [];

/** Whether an ended run has open questions in its frames: only the daemon knows their decisions. */
export const hasLooseEnds = ({ turns }: ChatState): boolean =>
	turns.some(({ view }) => view?.final && openAsksOf(view).length > 0);

/** Removes the local copies of messages that a run shows. */
function settleOutgoing(chat: ChatState, row: RunJson): ChatState {
	const shown = new Set(row.messages.map((message) => message.event_id));
	return {
		...chat,
		outgoing: chat.outgoing.filter((mine) => mine.eventId === undefined || !shown.has(mine.eventId)),
		queued: chat.queued.filter((waiting) => !shown.has(waiting.event_id)),
	};
}

export function sending(chat: ChatState, key: string, text: string): ChatState {
	const seenBefore = eventsOf(chat).map(({ eventId }) => eventId);
	if (chat.outgoing.some((mine) => mine.key === key)) {
		return patchOutgoing(chat, key, { state: "sending", seenBefore });
	}
	return { ...chat, outgoing: [...chat.outgoing, { key, text, state: "sending", seenBefore }] };
}

export const sendFailed = (chat: ChatState, key: string, error: string): ChatState =>
	patchOutgoing(chat, key, { state: "failed", error, seenBefore: undefined });

export const discarded = (chat: ChatState, key: string): ChatState => ({
	...chat,
	outgoing: chat.outgoing.filter((mine) => mine.key !== key),
});

/** The messages that the daemon lists: in turns and queued. */
export function eventsOf({ turns, queued }: ChatState): { eventId: string; text: string }[] {
	const shown = turns.flatMap(({ row }) => row?.messages ?? []);
	return [...shown, ...queued].flatMap(({ event_id: eventId, text }) =>
		eventId === undefined ? [] : [{ eventId, text }],
	);
}

export function sent(chat: ChatState, key: string, accepted: MessageAccepted): ChatState {
	const { event_id: eventId, run_id: runId } = accepted;
	// The run may arrive before the response that names it.
	const row = chat.turns.find((turn) => turn.row?.messages.some((message) => message.event_id === eventId));
	if (row) return discarded(chat, key);
	const waits = runId === undefined;
	const state = waits ? "queued" : "started";
	return patchOutgoing(chat, key, { state, eventId, ...(!waits && { runId }), seenBefore: undefined });
}

/** A message that no run will answer moves from the queue to its place in the thread. */
export function withEvents(chat: ChatState, rows: readonly EventJson[]): ChatState {
	const events = { ...chat.events, ...Object.fromEntries(rows.map((row) => [row.event_id, row])) };
	const outgoing = chat.outgoing.filter(({ eventId }) => !(eventId && isSidelined(events[eventId])));
	return { ...chat, events, outgoing };
}

const SIDELINED: ReadonlySet<EventJson["disposition"]> = new Set(["dropped", "rejected", "superseded", "cancelled"]);

export const isSidelined = (event: EventJson | undefined): boolean =>
	event !== undefined && event.batch === undefined && SIDELINED.has(event.disposition);

function patchOutgoing(chat: ChatState, key: string, change: Partial<OutgoingMessage>): ChatState {
	return { ...chat, outgoing: chat.outgoing.map((mine) => (mine.key === key ? { ...mine, ...change } : mine)) };
}

export function isLive(turn: TurnItem): boolean {
	return turn.view ? !turn.view.final : turn.row !== undefined && isUnsettled(turn.row);
}

const isUnsettled = ({ status }: RunJson): boolean => status === "running" || status === "stopping";

/** Runs whose end was received while their row in the ledger could not be read. */
export const unreadRunsOf = (chat: ChatState): string[] =>
	chat.turns.filter(({ row, view }) => view?.final && (!row || isUnsettled(row))).map(({ runId }) => runId);

export const liveTurnOf = (chat: ChatState): TurnItem | undefined => chat.turns.findLast(isLive);
