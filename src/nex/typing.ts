/** The typing indicator as a pure step: five triggers turn it on, it is renewed before it expires, and it never sticks. */

import type { Clock } from "../std/clock.ts";

export interface TypingRules {
	/** How often it is renewed. */
	intervalMs: number;
	/** How long the platform shows it. */
	expiryMs: number;
	/** Without a trigger it ends after this, whatever else says it should stay. */
	ttlMs: number;
}

/** Long enough for a slow tool or a thinking model; short enough that nobody waits for a dead one. */
export const TYPING_TTL_MS = 300_000;

export interface TypingState {
	/** When it was last shown; undefined while it is off. */
	readonly shownAt: number | undefined;
	readonly triggeredAt: number;
	/** Tools that run: while there are any, a message does not end the indicator. */
	readonly tools: number;
	readonly over: boolean;
}

export type TypingInput =
	/** What makes typing go on; a tool that says it is alive, too. */
	| { type: "run_start" | "message_start" | "text" | "tool_start" | "reasoning" | "tool_progress" }
	| { type: "tool_end" }
	/** A message is out: the platform takes the indicator away with it. */
	| { type: "message_out" }
	/** What is visible has grown; no indicator is needed beside it. */
	| { type: "message_grown" }
	| { type: "run_end" }
	| { type: "tick" };

export type TypingEffect = { type: "show" } | { type: "hide" } | { type: "wake"; at: number };

export interface TypingStep {
	state: TypingState;
	effects: TypingEffect[];
}

export const QUIET: TypingState = { shownAt: undefined, triggeredAt: 0, tools: 0, over: false };

export function stepTyping(state: TypingState, input: TypingInput, now: number, rules: TypingRules): TypingStep {
	if (state.over) return { state, effects: [] };
	switch (input.type) {
		case "run_start":
		case "message_start":
		case "text":
		case "reasoning":
		case "tool_progress":
			return renew({ ...state, triggeredAt: now }, now, rules);
		case "tool_start":
			return renew({ ...state, triggeredAt: now, tools: state.tools + 1 }, now, rules);
		case "tool_end":
			return { state: { ...state, tools: Math.max(0, state.tools - 1) }, effects: [] };
		case "message_out":
			return state.tools > 0 && state.shownAt !== undefined
				? renew({ ...state, shownAt: undefined }, now, rules)
				: hide(state);
		case "message_grown":
			return state.tools > 0 ? { state, effects: [] } : hide(state);
		case "run_end": {
			const step = hide(state);
			return { ...step, state: { ...step.state, over: true } };
		}
		case "tick":
			return state.shownAt === undefined ? { state, effects: [] } : renew(state, now, rules);
		default:
			return input satisfies never;
	}
}

const hide = (state: TypingState): TypingStep => ({
	state: { ...state, shownAt: undefined },
	effects: state.shownAt === undefined ? [] : [{ type: "hide" }],
});

/** An interval beyond the expiry would make it flicker. */
export const intervalOf = (rules: TypingRules): number => Math.min(rules.intervalMs, rules.expiryMs);

function renew(state: TypingState, now: number, rules: TypingRules): TypingStep {
	const end = state.triggeredAt + rules.ttlMs;
	if (now >= end) return { ...hide(state), state: { ...state, shownAt: undefined, tools: 0 } };
	const next = (shownAt: number) => Math.min(shownAt + intervalOf(rules), end);
	if (state.shownAt !== undefined && now - state.shownAt < intervalOf(rules)) {
		return { state, effects: [{ type: "wake", at: next(state.shownAt) }] };
	}
	return { state: { ...state, shownAt: now }, effects: [{ type: "show" }, { type: "wake", at: next(now) }] };
}

export interface Typing {
	take(input: TypingInput): void;
}

/** Owns the timer. `show` writes the line. */
export function createTyping(rules: TypingRules | undefined, clock: Clock, show: (on: boolean) => void): Typing {
	if (!rules) return { take() {} };
	let state = QUIET;
	let wake: { at: number; cancel: () => void } | undefined;
	const take = (input: TypingInput) => {
		const step = stepTyping(state, input, clock.now(), rules);
		state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "wake") plan(effect.at);
			else show(effect.type === "show");
		}
		if (state.shownAt === undefined) {
			wake?.cancel();
			wake = undefined;
		}
	};
	const plan = (at: number) => {
		if (wake && wake.at === at) return;
		wake?.cancel();
		const cancel = clock.after(Math.max(0, at - clock.now()), () => {
			wake = undefined;
			take({ type: "tick" });
		});
		wake = { at, cancel };
	};
	return { take };
}
