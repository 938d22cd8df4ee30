/**
 * The queue of one session as a pure step: from a lane and an input to the next lane and the effects to carry out. Every mode is a choice of
 * which messages start together, and when.
 */

import type { QueueSettings } from "../../ledger/inbox/port.ts";

export interface QueuedMessage {
	readonly eventId: string;
	readonly mode: QueueSettings["mode"];
	readonly collectMs: number;
	readonly at: number;
	/** Answered in the same run as the message before it. */
	readonly joined: boolean;
	/** A summary of messages that were dropped at the cap; it does not count at the cap itself. */
	readonly summary: boolean;
}

export interface SessionLane {
	/** A run is being prepared, is running or is being stopped. */
	readonly busy: boolean;
	/** The run is being stopped for a newer message. */
	readonly stopping: boolean;
	/** Oldest first. */
	readonly waiting: readonly QueuedMessage[];
}

export const EMPTY_LANE: SessionLane = { busy: false, stopping: false, waiting: [] };

export type LaneInput =
	| { type: "arrive"; eventId: string; settings: QueueSettings }
	/** The run has settled, or could not start. */
	| { type: "free" }
	/** Time has passed. */
	| { type: "tick" }
	/** Messages that joined the run, or were cancelled. */
	| { type: "leave"; eventIds: readonly string[] };

export type LaneEffect =
	/** The arriving message is refused; the lane is unchanged. */
	| { type: "refuse"; because: string }
	/** The arriving message starts a run immediately. */
	| { type: "admit" }
	/** The arriving message waits. */
	| { type: "wait" }
	| { type: "drop"; eventId: string; because: string }
	/** A new event with a one-line summary replaces the messages. */
	| { type: "summarise"; eventIds: readonly string[]; into: string }
	/** The run is stopped for the message `by`. */
	| { type: "stop"; by: string; rollback: boolean }
	/** Waiting messages become one run. */
	| { type: "start"; eventIds: readonly string[] };

export interface LaneStep {
	lane: SessionLane;
	effects: LaneEffect[];
}

/** A sender who keeps typing is answered after this many times `collectMs`. */
const COLLECT_STRETCH_MAX = 10;

export function step(lane: SessionLane, input: LaneInput, now: number): LaneStep {
	switch (input.type) {
		case "arrive":
			return arrive(lane, input, now);
		case "free":
			return next({ ...lane, busy: false, stopping: false }, [], now);
		case "tick":
			return next(lane, [], now);
		case "leave":
			return next({ ...lane, waiting: without(lane.waiting, new Set(input.eventIds)) }, [], now);
		default:
			return input satisfies never;
	}
}

/** When the lane needs a `tick`; undefined when it waits for something else. */
export function wakeAt(lane: SessionLane): number | undefined {
	return lane.busy || lane.waiting.length === 0 ? undefined : readyAt(firstGroup(lane.waiting));
}

/** The lane of messages that waited in an earlier process, oldest first. */
export function restored(
	events: readonly (Pick<QueuedMessage, "eventId" | "at" | "summary"> & QueueSettings)[],
): SessionLane {
	const waiting = events.reduce<readonly QueuedMessage[]>((line, { eventId, at, summary, ...settings }) => {
		return append(line, { eventId, at, summary }, settings);
	}, []);
	return { ...EMPTY_LANE, waiting };
}

function arrive(
	lane: SessionLane,
	{ eventId, settings }: Extract<LaneInput, { type: "arrive" }>,
	now: number,
): LaneStep {
	const { mode, messagesMax, atCap } = settings;
	const idle = !lane.busy && lane.waiting.length === 0;
	if (idle && mode !== "collect") return { lane: { ...lane, busy: true }, effects: [{ type: "admit" }] };
	if (mode === "reject" && !idle) return refuse(lane, "the session is busy; send it again when it has answered");
	const effects: LaneEffect[] = [];
	let { waiting } = lane;
	if (waiting.filter((one) => !one.summary).length >= messagesMax) {
		if (atCap === "drop_newest") return refuse(lane, `${messagesMax} messages wait already; try again later`);
		waiting =
			atCap === "drop_oldest" ? dropOldest(waiting, messagesMax, effects) : summarise(waiting, eventId, effects);
	}
	waiting = append(waiting, { eventId, at: now, summary: false }, settings);
	effects.push({ type: "wait" });
	const stop = mode === "interrupt" && lane.busy && !lane.stopping;
	if (stop) effects.push({ type: "stop", by: eventId, rollback: settings.rollback === true });
	return next({ busy: lane.busy, stopping: lane.stopping || stop, waiting }, effects, now);
}

/** When the first message of a group leaves, the next one becomes the first of the group. */
function without(line: readonly QueuedMessage[], eventIds: ReadonlySet<string>): readonly QueuedMessage[] {
	const remaining: QueuedMessage[] = [];
	let joined = true;
	for (const one of line) {
		joined &&= one.joined;
		if (eventIds.has(one.eventId)) continue;
		remaining.push(one.joined === joined ? one : { ...one, joined });
		joined = true;
	}
	return remaining;
}

const refuse = (lane: SessionLane, because: string): LaneStep => ({ lane, effects: [{ type: "refuse", because }] });

function append(
	line: readonly QueuedMessage[],
	entry: Pick<QueuedMessage, "eventId" | "at" | "summary">,
	{ mode, collectMs }: Pick<QueueSettings, "mode" | "collectMs">,
): readonly QueuedMessage[] {
	const last = { ...entry, mode, collectMs };
	// An interruption is answered together with everything that waits.
	if (mode === "interrupt") return [...line.map((one) => ({ ...one, joined: true })), { ...last, joined: true }];
	return [...line, { ...last, joined: mode === "collect" && line.at(-1)?.mode === "collect" }];
}

/** Never drops a summary: it is the only record of the messages it replaced. */
function dropOldest(
	line: readonly QueuedMessage[],
	messagesMax: number,
	effects: LaneEffect[],
): readonly QueuedMessage[] {
	const oldest = line.find((one) => !one.summary)!;
	const because = `${messagesMax} ${messagesMax === 1 ? "message" : "messages"} waited already, and a newer one came`;
	effects.push({ type: "drop", eventId: oldest.eventId, because });
	return line.filter((one) => one !== oldest);
}

function summarise(line: readonly QueuedMessage[], newest: string, effects: LaneEffect[]): readonly QueuedMessage[] {
	const into = summaryIdOf(newest);
	effects.push({ type: "summarise", eventIds: line.map((one) => one.eventId), into });
	return [{ ...line.at(-1)!, eventId: into, at: line[0]!.at, joined: false, summary: true }];
}

/** Ids of synthetic events derive from the newest event, so that a step needs no randomness. */
export const summaryIdOf = (eventId: string): string => `${eventId}.summary`;
export const batchIdOf = (eventId: string): string => `${eventId}.batch`;

/** Starts the next messages when the lane is free and they have waited long enough. */
function next(lane: SessionLane, effects: LaneEffect[], now: number): LaneStep {
	if (lane.busy || lane.waiting.length === 0) return { lane, effects };
	const group = firstGroup(lane.waiting);
	if (readyAt(group) > now) return { lane, effects };
	effects.push({ type: "start", eventIds: group.map((one) => one.eventId) });
	return { lane: { busy: true, stopping: false, waiting: lane.waiting.slice(group.length) }, effects };
}

/** The messages of the next run. */
function firstGroup(line: readonly QueuedMessage[]): readonly QueuedMessage[] {
	const end = line.findIndex((one, n) => n > 0 && !one.joined);
	return end < 0 ? line : line.slice(0, end);
}

function readyAt(group: readonly QueuedMessage[]): number {
	const first = group[0]!;
	const last = group.at(-1)!;
	if (last.mode !== "collect") return 0;
	return Math.min(last.at + last.collectMs, first.at + COLLECT_STRETCH_MAX * last.collectMs);
}
