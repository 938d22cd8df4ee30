/** The life of one streaming connection as a value: when to connect, from where, when to wait, and when to give up. */

import { type ErrorCode, NexusError } from "@nexus-stream/protocol";

export interface LinkLimits {
	/** The first wait before another try; doubles with each, up to `retryMaxMs`. */
	retryFirstMs: number;
	retryMaxMs: number;
	/** Nothing heard for this long, not even a heartbeat: the connection is dead although nobody said so. */
	silenceMs: number;
	/** A connection that was open this long was a good one, also when nothing came over it. */
	steadyMs: number;
	/** Without a good connection for this long, the reader is told that the server is lost. */
	giveUpMs: number;
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
	/** The connection was lost; another try is due. */
	| "waiting"
	/** Given up on purpose for a while (the page is hidden); goes on from the same place. */
	| "paused"
	/** The log is finished. */
	| "ended"
	/** The server said no. */
	| "refused"
	/** Nobody answered for `giveUpMs`. */
	| "lost"
	| "stopped";

export interface LinkState {
	readonly phase: LinkPhase;
	/** The last record that was taken; a reconnect asks for what comes after it. Undefined = from the first that is kept. */
	readonly lastId: number | undefined;
	/** Tries since the last sign of life. */
	readonly attempt: number;
	readonly receivedAt: number;
	/** When the connection was made (phase live). */
	readonly openedAt: number;
	/** How often the server answered with `internal` since then. */
	readonly internals: number;
	/** When the first of these tries was lost. */
	readonly lostAt: number;
	/** When the next try is due (phase waiting). */
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
	/** Whoever takes the records failed: nothing more is of use to it. */
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
	phase: "stopped",
	lastId: after,
	attempt: 0,
	internals: 0,
	receivedAt: 0,
	openedAt: 0,
	lostAt: 0,
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
			return stay({ ...state, receivedAt: now, attempt: 0, internals: 0 });
		case "record":
			return takeRecord(state, input, now);
		case "lost":
			return isOpen(state) ? retry({ ...state, error: input.error }, now, random, limits) : stay(state);
		case "refused":
			return refused({ ...state, error: input.error }, input.error.code, now, random, limits);
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
			return state.phase === "paused" ? connect({ ...state, attempt: 0, internals: 0 }, now) : stay(state);
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
	const next: LinkState = { ...state, phase: "live", lastId: input.id, receivedAt: now, attempt: 0, internals: 0 };
	if (!input.final) return { state: next, effects: TAKE };
	return { state: { ...next, phase: "ended" }, effects: [...TAKE, DISCONNECT] };
}

function connectAgain(state: LinkState, now: number): LinkStep {
	const step = connect(state, now);
	return { state: step.state, effects: [DISCONNECT, ...step.effects] };
}

function retry(state: LinkState, now: number, random: () => number, limits: LinkLimits): LinkStep {
	const wasSteady = state.phase === "live" && now - state.openedAt >= limits.steadyMs;
	const attempt = wasSteady ? 0 : state.attempt;
	const lostAt = attempt === 0 ? now : state.lostAt;
	const isHopeless = attempt > 0 && now - lostAt >= limits.giveUpMs;
	const dueAt = now + retryDelayMs(attempt, random, limits);
	return {
		state: { ...state, phase: isHopeless ? "lost" : "waiting", attempt: attempt + 1, lostAt, dueAt },
		effects: [DISCONNECT],
	};
}

/** How long to wait before try `attempt` (from 0 on). */
export function retryDelayMs(
	attempt: number,
	random: () => number,
	limits: Pick<LinkLimits, "retryFirstMs" | "retryMaxMs">,
): number {
	const ceiling = Math.min(limits.retryMaxMs, limits.retryFirstMs * 2 ** Math.min(attempt, 16));
	return ceiling * (0.5 + random() / 2);
}

/** Busy and starting pass; anything else does not change by asking again. */
const TEMPORARY: ReadonlySet<ErrorCode> = new Set(["unavailable", "busy", "timeout"]);
/** A fault of the server may pass, or be there for good. */
const INTERNAL_RETRIES_MAX = 5;

/** Whether to ask again; `internals` is how often the answer was `internal` before. */
export const isTemporary = (code: ErrorCode, internals: number): boolean =>
	code === "internal" ? internals < INTERNAL_RETRIES_MAX : TEMPORARY.has(code);

function refused(state: LinkState, code: ErrorCode, now: number, random: () => number, limits: LinkLimits): LinkStep {
	if (!isOpen(state)) return stay(state);
	const internals = state.internals + (code === "internal" ? 1 : 0);
	if (isTemporary(code, state.internals)) return retry({ ...state, internals }, now, random, limits);
	return { state: { ...state, phase: "refused" }, effects: [DISCONNECT] };
}

function tick(state: LinkState, now: number, random: () => number, limits: LinkLimits): LinkStep {
	if (state.phase === "waiting" && now >= state.dueAt) return connect(state, now);
	if (!isOpen(state) || now - state.receivedAt < limits.silenceMs) return stay(state);
	const error = new NexusError("unavailable", "the connection fell silent");
	return retry({ ...state, error }, now, random, limits);
}

/** When the next `tick` can do something; undefined when only an event can. */
export function nextTickAt(state: LinkState, limits: LinkLimits = LINK_LIMITS): number | undefined {
	if (state.phase === "waiting") return state.dueAt;
	return isOpen(state) ? state.receivedAt + limits.silenceMs : undefined;
}
