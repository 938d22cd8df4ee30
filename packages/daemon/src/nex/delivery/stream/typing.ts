/** The typing indicator as a pure step: five triggers turn it on, it is renewed before it expires, and it always ends. */

import type { Activity } from "@nexus-stream/adapter/port";
import type { ToolStatusEvent } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { DeliveryContext } from "../delivery-context.ts";
import type { SourceEvent } from "../source.ts";

export interface TypingRules {
	/** How often it is renewed. */
	intervalMs: number;
	/** How long the platform shows it. */
	expiryMs: number;
	/** Without a trigger the indicator ends after this, also while a tool runs. */
	ttlMs: number;
	/** The platform shows the indicator next to a growing message. */
	besideText?: boolean;
	/** The platform shows the name of the running tool, so a change is shown immediately. */
	showsTools: boolean;
}

export interface TypingState {
	/** When the indicator was last shown; undefined while it is off. */
	readonly shownAt: number | undefined;
	readonly triggeredAt: number;
	/** Running tools, the newest last: while there are any, a message does not end the indicator. */
	readonly tools: readonly RunningTool[];
	readonly over: boolean;
}

export interface RunningTool extends Required<Activity> {
	id: string;
}

export type TypingInput =
	/** Triggers, including the progress report of a tool. */
	| { type: "run_start" | "message_start" | "text" | "reasoning" | "tool_progress" }
	| ({ type: "tool_start" } & RunningTool)
	| { type: "tool_end"; id: string }
	/** A message was sent: the platform removes the indicator with it. */
	| { type: "message_out" }
	/** The visible text has grown; no indicator is needed unless the platform shows both. */
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

/** More tools than run in parallel. */
const TOOLS_MAX = 64;

const withTool = (tools: readonly RunningTool[], { id, text, tool }: RunningTool): RunningTool[] =>
	[...tools.filter((each) => each.id !== id), { id, text, tool }].slice(-TOOLS_MAX);

/** A different tool is shown immediately where the platform shows tool names. */
const isNews = (before: TypingState, after: TypingState, { showsTools }: TypingRules): boolean =>
	showsTools && before.tools.at(-1)?.text !== after.tools.at(-1)?.text;

/** The newest running tool. */
function doingOf({ tools }: TypingState, { showsTools }: TypingRules): Activity {
	const newest = showsTools ? tools.at(-1) : undefined;
	return newest ? { text: newest.text, tool: newest.tool } : {};
}

const hide = (state: TypingState): TypingStep => ({
	state: { ...state, shownAt: undefined },
	effects: state.shownAt === undefined ? [] : [{ type: "hide" }],
});

/** A longer interval than the expiry would make the indicator flicker. */
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

/** Shows no typing indicator. */
export const NO_TYPING: Typing = { take() {} };

/** Owns the timer. `show` writes the line. */
export function createTyping(
	rules: TypingRules | undefined,
	clock: Clock,
	show: (on: boolean, doing: Activity) => void,
): Typing {
	if (!rules) return NO_TYPING;
	let state = QUIET;
	let wake: { at: number; cancel: () => void } | undefined;
	const take = (input: TypingInput) => {
		const step = stepTyping(state, input, clock.now(), rules);
		state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "wake") schedule(effect.at);
			else show(effect.type === "show", effect.type === "show" ? effect.doing : {});
		}
		if (state.shownAt === undefined) {
			wake?.cancel();
			wake = undefined;
		}
	};
	const schedule = (at: number) => {
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

/** Undefined when the platform has no typing indicator, or the configuration disables it. */
export function typingRulesOf({ info, account, limits }: DeliveryContext): TypingRules | undefined {
	const { typing } = account.config;
	if (
		typing?.enabled === false ||
		account.streaming.mode === "off" ||
		!info.typing ||
		!info.supports.includes("typing")
	)
		return undefined;
	const { expiryMs, text: showsTools = false, beside } = info.typing;
	return {
		intervalMs: typing?.intervalMs ?? info.typing.intervalMs,
		expiryMs,
		ttlMs: limits.typingTtlMs,
		showsTools,
		besideText: beside || undefined,
	};
}

/** The trigger of an event. `visible`: the text visibly grows, and the platform shows no indicator next to it. */
export function typingInputOf(event: SourceEvent["event"], visible: boolean): TypingInput | undefined {
	switch (event.type) {
		case "stream_start":
			return { type: "run_start" };
		case "token":
			return visible ? undefined : { type: "text" };
		case "tool_status":
			return toolInputOf(event);
		case "reasoning":
			return { type: "reasoning" };
		case "stream_end":
			return event.final === false ? { type: "message_start" } : undefined;
		case "stream_error":
		case "part":
			return undefined;
		default:
			return event satisfies never;
	}
}

function toolInputOf({ status, toolCallId: id, toolName: tool, summary }: ToolStatusEvent): TypingInput {
	if (status === "started") return { type: "tool_start", id, tool, text: summary ?? tool };
	return status === "progress" ? { type: "tool_progress" } : { type: "tool_end", id };
}
