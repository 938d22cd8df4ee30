/** The typing indicator as a pure step: five triggers turn it on, it is renewed before it expires, and it never sticks. */

import type { Activity } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";

export interface TypingRules {
	/** How often it is renewed. */
	intervalMs: number;
	/** How long the platform shows it. */
	expiryMs: number;
	/** Without a trigger it ends after this, whatever else says it should stay. */
	ttlMs: number;
	/** The platform shows typing beside a message that grows. */
	besideText?: boolean;
	/** The platform shows what is being done, so a change of that is shown at once. */
	tellsTools: boolean;
}

/** Long enough for a slow tool or a thinking model; short enough that nobody waits for a dead one. */
export const TYPING_TTL_MS = 300_000;

export interface TypingState {
	/** When it was last shown; undefined while it is off. */
	readonly shownAt: number | undefined;
	readonly triggeredAt: number;
	/** Tools that run, the newest last: while there are any, a message does not end the indicator. */
	readonly tools: readonly RunningTool[];
	readonly over: boolean;
}

export interface RunningTool extends Required<Activity> {
	id: string;
}

export type TypingInput =
	/** What makes typing go on; a tool that says it is alive, too. */
	| { type: "run_start" | "message_start" | "text" | "reasoning" | "tool_progress" }
	| ({ type: "tool_start" } & RunningTool)
	| { type: "tool_end"; id: string }
	/** A message is out: the platform takes the indicator away with it. */
	| { type: "message_out" }
	/** What is visible has grown; no indicator is needed beside it, where the platform does not show both. */
	| { type: "message_grown" }
	| { type: "run_end" }
	| { type: "tick" };

export type TypingEffect = { type: "show"; doing: Activity } | { type: "hide" } | { type: "wake"; at: number };

export interface TypingStep {
	state: TypingState;
	effects: TypingEffect[];
}

export const QUIET: TypingState = { shownAt: undefined, triggeredAt: 0, tools: [], over: false };

export function stepTyping(state: TypingState, input: TypingInput, now: number, rules: TypingRules): TypingStep {
	if (state.over) return { state, effects: [] };
	switch (input.type) {
		case "run_start":
		case "message_start":
		case "text":
		case "reasoning":
		case "tool_progress":
			return renew({ ...state, triggeredAt: now }, now, rules);
		case "tool_start": {
			const next = { ...state, triggeredAt: now, tools: withTool(state.tools, input) };
			return renew(isNews(state, next, rules) ? { ...next, shownAt: undefined } : next, now, rules);
		}
		case "tool_end": {
			const next = { ...state, tools: state.tools.filter(({ id }) => id !== input.id) };
			if (state.shownAt === undefined || !isNews(state, next, rules)) return { state: next, effects: [] };
			return renew({ ...next, shownAt: undefined }, now, rules);
		}
		case "message_out":
			return state.tools.length > 0 && state.shownAt !== undefined
				? renew({ ...state, shownAt: undefined }, now, rules)
				: hide(state);
		case "message_grown":
			return state.tools.length > 0 || rules.besideText ? { state, effects: [] } : hide(state);
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

/** More than a person follows, and more than run side by side. */
const TOOLS_MAX = 64;

const withTool = (tools: readonly RunningTool[], { id, text, tool }: RunningTool): RunningTool[] =>
	[...tools.filter((each) => each.id !== id), { id, text, tool }].slice(-TOOLS_MAX);

/** Another tool is told at once where it can be seen; elsewhere the indicator only goes on. */
const isNews = (before: TypingState, after: TypingState, { tellsTools }: TypingRules): boolean =>
	tellsTools && before.tools.at(-1)?.text !== after.tools.at(-1)?.text;

/** The newest of the tools that run. */
function doingOf({ tools }: TypingState, { tellsTools }: TypingRules): Activity {
	const newest = tellsTools ? tools.at(-1) : undefined;
	return newest ? { text: newest.text, tool: newest.tool } : {};
}

const hide = (state: TypingState): TypingStep => ({
	state: { ...state, shownAt: undefined },
	effects: state.shownAt === undefined ? [] : [{ type: "hide" }],
});

/** An interval beyond the expiry would make it flicker. */
export const intervalOf = (rules: TypingRules): number => Math.min(rules.intervalMs, rules.expiryMs);

function renew(state: TypingState, now: number, rules: TypingRules): TypingStep {
	const end = state.triggeredAt + rules.ttlMs;
	if (now >= end) return { ...hide(state), state: { ...state, shownAt: undefined, tools: [] } };
	const next = (shownAt: number) => Math.min(shownAt + intervalOf(rules), end);
	if (state.shownAt !== undefined && now - state.shownAt < intervalOf(rules)) {
		return { state, effects: [{ type: "wake", at: next(state.shownAt) }] };
	}
	const show = { type: "show" as const, doing: doingOf(state, rules) };
	return { state: { ...state, shownAt: now }, effects: [show, { type: "wake", at: next(now) }] };
}

export interface Typing {
	take(input: TypingInput): void;
}

/** Owns the timer. `show` writes the line. */
export function createTyping(
	rules: TypingRules | undefined,
	clock: Clock,
	show: (on: boolean, doing: Activity) => void,
): Typing {
	if (!rules) return { take() {} };
	let state = QUIET;
	let wake: { at: number; cancel: () => void } | undefined;
	const take = (input: TypingInput) => {
		const step = stepTyping(state, input, clock.now(), rules);
		state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "wake") plan(effect.at);
			else show(effect.type === "show", effect.type === "show" ? effect.doing : {});
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
