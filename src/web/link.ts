/** The life of one streaming connection as a value: when to connect, from where, when to wait, and what a person is told. */

export interface LinkLimits {
	retryFirstMs: number;
	retryMaxMs: number;
	/** Nothing heard for this long, not even a heartbeat: the connection is dead although nobody said so. */
	silenceMs: number;
}

export const LINK_LIMITS: LinkLimits = { retryFirstMs: 250, retryMaxMs: 5000, silenceMs: 45_000 };

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
	| "stopped";

export interface LinkState {
	readonly phase: LinkPhase;
	/** The last record that was taken; a reconnect asks for what comes after it. */
	readonly lastId: number;
	/** Tries since the last sign of life. */
	readonly attempt: number;
	readonly heardAt: number;
	/** When the next try is due (phase waiting). */
	readonly dueAt: number;
	/** The record that was missed when the last connection was dropped for a gap; a second time it is accepted. */
	readonly gapAt: number;
	readonly status?: number;
}

export type LinkInput =
	| { type: "start" }
	| { type: "opened" }
	/** A record arrived; `final` when nothing follows it in this log. */
	| { type: "record"; id: number; final: boolean }
	| { type: "heartbeat" }
	| { type: "lost" }
	| { type: "refused"; status: number }
	/** The server has nothing more for this log (204). */
	| { type: "nothing-more" }
	| { type: "tick" }
	/** The browser says that the network is back, or the person asked. */
	| { type: "hurry" }
	| { type: "pause" }
	| { type: "resume" }
	| { type: "stop" };

export type LinkEffect = { type: "connect"; after: number } | { type: "disconnect" } | { type: "take" };

export interface LinkStep {
	readonly state: LinkState;
	readonly effects: readonly LinkEffect[];
}

export const newLink = (after: number): LinkState => ({
	phase: "stopped",
	lastId: after,
	attempt: 0,
	heardAt: 0,
	dueAt: 0,
	gapAt: -1,
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
			return state.phase === "connecting" ? stay({ ...state, phase: "live", heardAt: now }) : stay(state);
		case "heartbeat":
			return stay({ ...state, heardAt: now, attempt: 0 });
		case "record":
			return takeRecord(state, input, now);
		case "lost":
			return isOpen(state) ? retry(state, now, random, limits) : stay(state);
		case "refused":
			return refused(state, input.status, now, random, limits);
		case "nothing-more":
			return isOpen(state) ? { state: { ...state, phase: "ended" }, effects: [DISCONNECT] } : stay(state);
		case "tick":
			return tick(state, now, random, limits);
		case "hurry":
			return state.phase === "waiting" ? connect(state, now) : stay(state);
		case "pause":
			return canGoOn(state) ? { state: { ...state, phase: "paused" }, effects: [DISCONNECT] } : stay(state);
		case "resume":
			return state.phase === "paused" ? connect({ ...state, attempt: 0 }, now) : stay(state);
		case "stop":
			return { state: { ...state, phase: "stopped" }, effects: [DISCONNECT] };
		default:
			return input satisfies never;
	}
}

const isOpen = (state: LinkState): boolean => state.phase === "connecting" || state.phase === "live";
const canGoOn = (state: LinkState): boolean => isOpen(state) || state.phase === "waiting";

const connect = (state: LinkState, now: number): LinkStep => ({
	state: { ...state, phase: "connecting", heardAt: now },
	effects: [{ type: "connect", after: state.lastId }],
});

function takeRecord(state: LinkState, input: { id: number; final: boolean }, now: number): LinkStep {
	if (!isOpen(state)) return stay(state);
	if (input.id <= state.lastId) return stay({ ...state, heardAt: now });
	if (input.id > state.lastId + 1 && state.gapAt !== state.lastId + 1) {
		// Ask once more for what is missing. If it still does not come, it is gone, and the verifier will say so.
		return connectAgain({ ...state, gapAt: state.lastId + 1 }, now);
	}
	const next: LinkState = { ...state, phase: "live", lastId: input.id, heardAt: now, attempt: 0 };
	if (!input.final) return { state: next, effects: TAKE };
	return { state: { ...next, phase: "ended" }, effects: [...TAKE, DISCONNECT] };
}

function connectAgain(state: LinkState, now: number): LinkStep {
	const step = connect(state, now);
	return { state: step.state, effects: [DISCONNECT, ...step.effects] };
}

function retry(state: LinkState, now: number, random: () => number, limits: LinkLimits): LinkStep {
	const ceiling = Math.min(limits.retryMaxMs, limits.retryFirstMs * 2 ** Math.min(state.attempt, 16));
	const waitMs = ceiling * (0.5 + random() / 2);
	return {
		state: { ...state, phase: "waiting", attempt: state.attempt + 1, dueAt: now + waitMs },
		effects: [DISCONNECT],
	};
}

/** Busy, starting and broken are temporary; everything else in the 400s will not change by asking again. */
function refused(state: LinkState, status: number, now: number, random: () => number, limits: LinkLimits): LinkStep {
	if (!isOpen(state)) return stay(state);
	if (status === 429 || status === 408 || status >= 500) return retry({ ...state, status }, now, random, limits);
	return { state: { ...state, phase: "refused", status }, effects: [DISCONNECT] };
}

function tick(state: LinkState, now: number, random: () => number, limits: LinkLimits): LinkStep {
	if (state.phase === "waiting" && now >= state.dueAt) return connect(state, now);
	if (isOpen(state) && now - state.heardAt >= limits.silenceMs) return retry(state, now, random, limits);
	return stay(state);
}

/** When the next `tick` can do something; undefined when only an event can. */
export function nextTickAt(state: LinkState, limits: LinkLimits = LINK_LIMITS): number | undefined {
	if (state.phase === "waiting") return state.dueAt;
	return isOpen(state) ? state.heardAt + limits.silenceMs : undefined;
}
