/** Moves a draft from one message to the next, and applies the outcome of a call to it. */

import { type MarkdownState, START } from "../markdown/markdown-state.ts";
import { carryOf, type View } from "../markdown/split.ts";
import type { PlatformFault, StreamStatus } from "../port.ts";
import {
	type Calling,
	type Draft,
	type DraftEffect,
	type DraftInput,
	type DraftRules,
	type DraftStep,
	isEnded,
	isVisible,
	type OpenMessage,
	reopened,
	say,
	segmentOf,
	step,
	want,
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
		const announced: Draft = { ...draft, ordinal, message: { at: "announced", nonce, fixed } };
		return step(announced, say({ type: "message_creating", nonce, from: draft.since, to: fixed?.to, ordinal }));
	}
	const ready: Draft = { ...draft, ordinal, message: { at: "ready", nonce, fixed, triedAt: undefined } };
	return step(ready, want(isEnded(draft) ? "final" : "create"));
}

/** The part of the text that a message shows, and the place behind it. */
type Shown = Pick<Calling, "length" | "next">;

/** The first `length` units of the held text are visible for good. */
export function sent(draft: Draft, { length, next }: Shown, message: OpenMessage, rules: DraftRules): DraftStep {
	const moved = skipUnseen(advance({ ...draft, message: { at: "none" }, toolsShown: draft.tools }, length, next));
	const errorFollows = draft.closed === "error" && !draft.isErrorText && isVisible(rules.errorText);
	const from = draft.since;
	const to = moved.isErrorText ? draft.from : draft.from + length;
	const final = draft.closed !== undefined && moved.text === "" && moved.bounds.length === 0 && !errorFollows;
	// A new message's markdown begins at a bound anyway.
	const carry = final || draft.bounds[0] === to || draft.isErrorText ? undefined : carryOf(next);
	const finished = draft.isErrorText ? draft.finished : [...draft.finished, { id: message.id, from }];
	const after: Draft = { ...moved, since: to, isFirst: false, calling: undefined, finished };
	return step(
		after,
		say({ type: "message_sent", messageId: message.id, final, nonce: message.nonce, from, to, carry }),
	);
}

const nonceOfMessage = (draft: Draft): string | undefined =>
	draft.message.at === "none" ? undefined : draft.message.nonce;

const tell = (messageId: string, nonce: string | undefined, from: number): DraftEffect =>
	say({ type: "message_created", messageId, nonce, from });

/** A message created with its complete text is only reported as sent: one line cannot be half stored. */
export function created(before: Draft, id: string, rules: DraftRules): DraftStep {
	const { calling } = before;
	if (!calling || before.message.at !== "ready") return step(before);
	const { nonce } = before.message;
	const message: OpenMessage = {
		at: "open",
		id,
		nonce,
		way: calling.call.type === "start" ? "append" : "edit",
		fixed: undefined,
		length: calling.length,
		shown: "markdown" in calling.call ? calling.call.markdown : "",
		complete: calling.done,
		stopFirst: false,
		next: calling.next,
	};
	const draft = { ...before, ids: [...before.ids, id], message, toolsShown: before.tools };
	if (calling.done && message.way === "edit") return sent(draft, calling, message, rules);
	return step({ ...draft, calling: undefined }, tell(id, nonce, draft.since));
}

export function edited(draft: Draft, rules: DraftRules): DraftStep {
	const { calling, message } = draft;
	const idle: Draft = { ...draft, calling: undefined };
	if (calling?.call.type === "remove" && message.at === "none") return retracted(idle, calling.call.id, true);
	if (!calling || message.at !== "open") return step(idle);
	const { call } = calling;
	switch (call.type) {
		case "remove":
			return removed(idle);
		case "stop":
			if (calling.done) return sent(idle, calling, message, rules);
			return step({ ...idle, message: { ...message, stopFirst: false } });
		case "append":
			return updated(idle, { ...message, shown: message.shown + call.markdown, complete: calling.done }, calling);
		case "edit":
			if (calling.done) return sent(idle, calling, message, rules);
			return updated(idle, { ...message, shown: call.markdown }, calling);
		default:
			return step(idle);
	}
}

/** A finished message is gone, or cannot be taken away. */
function retracted(draft: Draft, id: string, isGone: boolean): DraftStep {
	const finished = draft.finished.filter((each) => each.id !== id);
	if (!isGone) return step({ ...draft, finished });
	const ids = draft.ids.filter((each) => each !== id);
	return step({ ...draft, finished, ids }, say({ type: "message_removed", messageId: id }));
}

/** The message is gone, or was announced and never made. */
export function removed(draft: Draft): DraftStep {
	const { message } = draft;
	const id = message.at === "open" ? message.id : undefined;
	const ids = draft.ids.filter((each) => each !== id);
	const status = say({ type: "message_removed", messageId: id, nonce: nonceOfMessage(draft) });
	return step({ ...draft, ids, message: { at: "none" }, checked: 0 }, status);
}

function updated(draft: Draft, message: OpenMessage, { length, next }: Calling): DraftStep {
	const to = draft.isErrorText ? draft.from : draft.from + length;
	const status = say({ type: "message_updated", messageId: message.id, chars: length, to });
	return step({ ...draft, message: { ...message, length, next } }, status);
}

export function found(before: Draft, id: string | undefined, rules: DraftRules): DraftStep {
	const draft: Draft = { ...before, calling: undefined };
	if (draft.message.at !== "lost") return step(draft);
	const { nonce, fixed } = draft.message;
	if (id === undefined)
		return step({ ...draft, message: { at: "ready", nonce, fixed, triedAt: undefined }, checked: 0 });
	const message = reopened(rules, id, nonce, fixed);
	// A complete message is reported as sent, as when it is created. "It exists" alone would leave it open after another crash and lose its
	// length: with less of the source at hand, the same rules may cut elsewhere.
	const isComplete = message.way === "fixed" && fixed !== undefined;
	const known: Draft = { ...draft, ids: [...draft.ids, id], message, checked: 0 };
	return isComplete ? step(known) : step(known, tell(id, nonce, draft.since));
}

type Failure = Extract<DraftInput, { type: "failed" }>;

/** Faults that say something about the moment or the text, not about the message as a whole. */
const PASSING: readonly PlatformFault[] = ["rate_limited", "unavailable", "invalid"];

export function failed(before: Draft, failure: Failure, now: number, rules: DraftRules): DraftStep {
	const draft: Draft = { ...before, calling: undefined };
	const { calling, message } = before;
	const fault = failure.fault;
	switch (calling?.call.type) {
		case "create":
		case "start":
			if (fault === "unknown_outcome") return lost(draft, failure, now, rules);
			// A refusal of this try says nothing about one before it.
			if (message.at === "ready" && message.doubtful) return giveUp(draft, { ...failure, fault: "unknown_outcome" });
			return giveUp(draft, failure);
		case "find":
			return giveUp(draft, { ...failure, fault: "unknown_outcome" });
		case "preview":
			// The platform keeps no previews; after a permanent fault none is sent any more.
			return step({ ...draft, previews: PASSING.includes(fault) });
		case "append":
			if (message.at !== "open" || fault === "denied" || !rules.canEdit) return giveUp(draft, failure);
			return step({ ...draft, message: reopened(rules, message.id, message.nonce, undefined), checked: 0 });
		case "stop":
			// A stream that is closed already, or is gone, needs no closing.
			return fault === "denied" ? giveUp(draft, failure) : edited({ ...draft, calling }, rules);
		case "remove":
			if (message.at === "none") return retracted(draft, calling.call.id, fault === "gone");
			return fault === "gone" ? removed(draft) : giveUp(draft, failure);
		case "edit":
			if (fault === "gone" && isTakenAway(draft)) return removed(draft);
			if (calling.done || message.at !== "open" || !PASSING.includes(fault)) return giveUp(draft, failure);
			// The next text or the end tries again.
			return step(draft);
		default:
			return giveUp(draft, failure);
	}
}

/** An earlier process took the message away and could not say so: there was no text in it. */
function isTakenAway({ hasVisibleText, message, seen, since }: Draft): boolean {
	return !hasVisibleText || (message.at === "open" && message.shown === "" && seen <= since);
}

function lost(draft: Draft, failure: Failure, now: number, rules: DraftRules): DraftStep {
	const { message } = draft;
	if (message.at !== "ready" || failure.last) return giveUp(draft, failure);
	if (rules.lookup === "find")
		return step({ ...draft, message: { at: "lost", nonce: message.nonce, fixed: message.fixed } });
	// The platform recognises the nonce for a while, so saying it again is the look-up.
	const fresh = message.triedAt !== undefined && now - message.triedAt < rules.nonceWindowMs;
	if (rules.lookup !== "nonce" || !fresh) return giveUp(draft, failure);
	return step({ ...draft, checked: 0, message: { ...message, doubtful: true } });
}

export function giveUp(draft: Draft, { fault, error, retryAfterMs }: Failure): DraftStep {
	return over(draft, { type: "delivery_error", error, code: fault, nonce: nonceOfMessage(draft), retryAfterMs });
}

export function over(draft: Draft, status: StreamStatus): DraftStep {
	return step({ ...draft, over: true }, say(status), { type: "over" });
}
