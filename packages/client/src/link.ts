/** The life of one streaming connection as a value: when to connect, from where, when to wait, and when to give up. */

import { NexusError } from "@nexus-stream/protocol";
import { type FailureKind, failureKindOf, NO_OUTAGE, type Outage, type RetryLimits, stepOutage } from "./outage.ts";

export interface LinkLimits extends RetryLimits {
	/** Silence for this long, without even a heartbeat, means that the connection is dead. */
	silenceMs: number;
}

export const LINK_LIMITS: LinkLimits = {
	retryFirstMs: 250,
	retryMaxMs: 5000,
	silenceMs: 45_000,
	steadyMs: 5000,
	giveUpMs: Number.POSITIVE_INFINITY,
};

export type LinkPhase =
	/** A connection is being made. */
	| "connecting"
	/** Records come as they are written. */
	| "live"
	/** The connection was lost; another attempt is due. */
	| "waiting"
	/** Closed on purpose for a while (the page is hidden); resumes from the same offset. */
	| "paused"
	/** The log is finished. */
	| "ended"
	/** The server said no. */
	| "refused"
	/** The server did not answer for `giveUpMs`. */
	| "lost"
	| "stopped";

export interface LinkState extends Outage {
	readonly phase: LinkPhase;
	/** The last record that was taken; a reconnect asks for what comes after it. Undefined = from the first that is kept. */
	readonly lastId: number | undefined;
	readonly receivedAt: number;
	/** When the connection was made (phase live). */
	readonly openedAt: number;
	/** When the next attempt is due (phase waiting). */
	readonly dueAt: number;
	/** The record that was missed when the last connection was dropped for a gap; a second time it is accepted. */
	readonly gapAt: number;
	/** How often the server repeated a record or left one out. It is made good here, and a sound server never does it. */
	readonly faults: number;
	/** Why the last connection was lost or refused, or how a callback failed (phase stopped). */
	readonly error?: NexusError;
}

export type LinkInput =
	| { type: "start" }
	| { type: "opened" }
	/** A record arrived; `final` when nothing follows it in this log. */
	| { type: "record"; id: number; final: boolean }
	/** A part of a record arrived: the connection works, but has brought nothing yet. */
	| { type: "heard" }
	| { type: "heartbeat" }
	| { type: "lost"; error: NexusError }
	| { type: "refused"; error: NexusError }
	/** The consumer of the records failed: stop reading. */
	| { type: "failed"; error: NexusError }
	/** The server has nothing more for this log (204). */
	| { type: "nothing-more" }
	| { type: "tick" }
	/** The browser says that the network is back, or the person asked. */
	| { type: "hurry" }
	| { type: "pause" }
	| { type: "resume" }
	| { type: "stop" };

export type LinkEffect = { type: "connect"; after: number | undefined } | { type: "disconnect" } | { type: "take" };

export interface LinkStep {
	readonly state: LinkState;
	readonly effects: readonly LinkEffect[];
}

export const newLink = (after: number | undefined): LinkState => ({
	...NO_OUTAGE,
	phase: "stopped",
	lastId: after,
	receivedAt: 0,
	openedAt: 0,
	dueAt: 0,
	gapAt: -1,
	faults: 0,
});

const DISCONNECT: LinkEffect = { type: "disconnect" };
const TAKE: readonly LinkEffect[] = [{ type: "take" }];
const stay = (state: LinkState): LinkStep => ({ state, effects: [] });

/** `random` spreads the tries of many readers that lost the same server. */
export function stepLink(
	state: LinkState,
	input: LinkInput,
	now: number,
	random: () => number = Math.random,
	limits: LinkLimits = LINK_LIMITS,
): LinkStep {
	switch (input.type) {
		case "start":
			return state.phase === "stopped" ? connect(state, now) : stay(state);
		case "opened":
			return state.phase === "connecting"
				? stay({ ...state, phase: "live", receivedAt: now, openedAt: now })
				: stay(state);
		case "heard":
			return isOpen(state) ? stay({ ...state, receivedAt: now }) : stay(state);
		case "heartbeat":
			return stay({ ...state, ...NO_OUTAGE, receivedAt: now });
		case "record":
			return takeRecord(state, input, now);
		case "lost":
			return isOpen(state) ? retry({ ...state, error: input.error }, "cut", now, random, limits) : stay(state);
		case "refused":
			return isOpen(state)
				? retry({ ...state, error: input.error }, failureKindOf(input.error.code), now, random, limits)
				: stay(state);
		case "failed":
			return { state: { ...state, phase: "stopped", error: input.error }, effects: [DISCONNECT] };
		case "nothing-more":
			return isOpen(state) ? { state: { ...state, phase: "ended" }, effects: [DISCONNECT] } : stay(state);
		case "tick":
			return tick(state, now, random, limits);
		case "hurry":
			return state.phase === "waiting" ? connect(state, now) : stay(state);
		case "pause":
			return canGoOn(state) ? { state: { ...state, phase: "paused" }, effects: [DISCONNECT] } : stay(state);
		case "resume":
			return state.phase === "paused" ? connect({ ...state, ...NO_OUTAGE }, now) : stay(state);
		case "stop":
			return isOver(state) ? stay(state) : { state: { ...state, phase: "stopped" }, effects: [DISCONNECT] };
		default:
			return input satisfies never;
	}
}

const isOpen = (state: LinkState): boolean => state.phase === "connecting" || state.phase === "live";
const canGoOn = (state: LinkState): boolean => isOpen(state) || state.phase === "waiting";

const connect = (state: LinkState, now: number): LinkStep => ({
	state: { ...state, phase: "connecting", receivedAt: now },
	effects: [{ type: "connect", after: state.lastId }],
});

/** Whether nothing will come any more. */
export const isOver = ({ phase }: LinkState): boolean =>
	phase === "ended" || phase === "refused" || phase === "lost" || phase === "stopped";

function takeRecord(state: LinkState, input: { id: number; final: boolean }, now: number): LinkStep {
	if (!isOpen(state)) return stay(state);
	const expected = state.lastId === undefined ? input.id : state.lastId + 1;
	if (input.id < expected) return stay({ ...state, receivedAt: now, faults: state.faults + 1 });
	if (input.id > expected && state.gapAt !== expected) {
		// Ask once more for what is missing. If it still does not come, it is gone, and the verifier will say so.
		return connectAgain({ ...state, gapAt: expected, faults: state.faults + 1 }, now);
	}
	const next: LinkState = { ...state, ...NO_OUTAGE, phase: "live", lastId: input.id, receivedAt: now };
	if (!input.final) return { state: next, effects: TAKE };
	return { state: { ...next, phase: "ended" }, effects: [...TAKE, DISCONNECT] };
}

function connectAgain(state: LinkState, now: number): LinkStep {
	const step = connect(state, now);
	return { state: step.state, effects: [DISCONNECT, ...step.effects] };
}

function retry(state: LinkState, kind: FailureKind, now: number, random: () => number, limits: LinkLimits): LinkStep {
	const wasSteady = state.phase === "live" && now - state.openedAt >= limits.steadyMs;
	const step = stepOutage(wasSteady ? NO_OUTAGE : state, kind, now, random, limits);
	const next: Partial<LinkState> =
		typeof step === "string" ? { phase: step } : { ...step.outage, phase: "waiting", dueAt: now + step.delayMs };
	return { state: { ...state, ...next }, effects: [DISCONNECT] };
}

function tick(state: LinkState, now: number, random: () => number, limits: LinkLimits): LinkStep {
	if (state.phase === "waiting" && now >= state.dueAt) return connect(state, now);
	if (!isOpen(state) || now - state.receivedAt < limits.silenceMs) return stay(state);
	const error = new NexusError("unavailable", "the connection fell silent");
	return retry({ ...state, error }, "cut", now, random, limits);
}

/** When the next `tick` can do something; undefined when only an event can. */
export function nextTickAt(state: LinkState, limits: LinkLimits = LINK_LIMITS): number | undefined {
	if (state.phase === "waiting") return state.dueAt;
	return isOpen(state) ? state.receivedAt + limits.silenceMs : undefined;
}
