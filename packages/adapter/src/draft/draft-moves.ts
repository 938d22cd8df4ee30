/** The moves of a draft from one message to the next. */

import { carryOf, type View } from "../markdown/compose.ts";
import { type MarkdownState, START } from "../markdown/markdown-state.ts";
import {
	type Draft,
	type DraftRules,
	type DraftStep,
	isEnded,
	isVisible,
	type OpenMessage,
	segmentOf,
} from "./draft-state.ts";

/** Drops texts that have ended and show nothing: an assistant message without text makes no platform message. */
export function skipUnseen(before: Draft): Draft {
	let draft = before;
	while (!draft.hasVisibleText && isEnded(draft) && draft.text + draft.bounds.join() !== "") {
		draft = advance(draft, (draft.bounds[0] ?? draft.from + draft.text.length) - draft.from, START);
	}
	return draft;
}

/** Moves the beginning of the held text; at a bound the next message's markdown starts afresh. */
export function advance(draft: Draft, length: number, markdown: MarkdownState): Draft {
	if (draft.isErrorText) {
		const rest = draft.text.slice(length);
		return { ...draft, markdown, text: isVisible(rest) ? rest : "", hasVisibleText: isVisible(rest) };
	}
	const from = draft.from + length;
	const text = draft.text.slice(length);
	const atBound = draft.bounds[0] === from;
	const bounds = atBound ? draft.bounds.slice(1) : draft.bounds;
	const next = { ...draft, from, text, bounds, markdown: atBound ? START : markdown, checked: 0 };
	return { ...next, hasVisibleText: isVisible(segmentOf(next).segment) };
}

/** Says that a message is going to be created; it is, once that is durable. */
export function announce(draft: Draft, rules: DraftRules, view?: View): DraftStep {
	const ordinal = draft.ordinal + 1;
	const fixed = view && !draft.isErrorText ? { to: draft.from + view.length, view } : undefined;
	const nonce = rules.nonce(ordinal, draft.since);
	if (rules.intent) {
		const to = fixed ? { to: fixed.to } : {};
		const status = { type: "message_creating" as const, nonce, from: draft.since, ...to, ordinal };
		return {
			draft: { ...draft, ordinal, message: { at: "announced", nonce, fixed } },
			effects: [{ type: "say", status }],
		};
	}
	const ready: Draft = { ...draft, ordinal, message: { at: "ready", nonce, fixed, triedAt: undefined } };
	return { draft: ready, effects: [{ type: "want", rank: isEnded(draft) ? "final" : "create", paced: true }] };
}

/** The first `length` units of the held text are visible for good. */
export function sent(
	draft: Draft,
	length: number,
	next: MarkdownState,
	message: OpenMessage,
	rules: DraftRules,
): DraftStep {
	const moved = skipUnseen(advance({ ...draft, message: { at: "none" }, toolsShown: draft.tools }, length, next));
	const errorFollows = draft.closed === "error" && !draft.isErrorText && isVisible(rules.errorText);
	const to = moved.isErrorText ? draft.from : draft.from + length;
	const final = draft.closed !== undefined && moved.text === "" && moved.bounds.length === 0 && !errorFollows;
	const status = {
		type: "message_sent" as const,
		messageId: message.id,
		final,
		nonce: message.nonce,
		from: draft.since,
		to,
		...(final ? {} : carried(draft, to, next)),
	};
	const finished = draft.isErrorText ? draft.finished : [...draft.finished, { id: message.id, from: draft.since }];
	const after: Draft = { ...moved, since: to, isFirst: false, calling: undefined, finished };
	return { draft: after, effects: [{ type: "say", status }] };
}

/** The place at `to`, unless a new message's markdown begins there anyway. */
function carried(draft: Draft, to: number, next: MarkdownState): { carry?: string } {
	const carry = draft.bounds[0] === to || draft.isErrorText ? undefined : carryOf(next);
	return carry === undefined ? {} : { carry };
}
