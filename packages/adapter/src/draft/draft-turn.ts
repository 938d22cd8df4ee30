/** A draft's turn has come: which call to make, with the text as it is now. */

import { stateAfter } from "../markdown/outline.ts";
import { compose, remainder, unclosed, type View } from "../markdown/split.ts";
import { advance, announce, giveUp, sent } from "./draft-outcome.ts";
import {
	type Calling,
	type Draft,
	type DraftCall,
	type DraftRules,
	type DraftStep,
	earlyText,
	isUnwanted,
	type OpenMessage,
	reopened,
	segmentOf,
	step,
	untrueMessage,
} from "./draft-state.ts";
import { toolLines } from "./tool-line.ts";

const CANNOT_TELL = {
	type: "failed",
	fault: "unknown_outcome",
	error: "A message may or may not have been created, and this platform cannot tell. Look at the chat.",
} as const;

export function take(before: Draft, now: number, rules: DraftRules): DraftStep {
	const { message } = before;
	if (message.at === "announced") return step(before);
	if (message.at === "lost" && rules.lookup !== "find") return giveUp(before, CANNOT_TELL);
	// How much of a stream was taken can only be mended by an edit.
	if (message.at === "open" && message.way === "fixed" && rules.style === "append") return giveUp(before, CANNOT_TELL);
	const untrue = message.at === "none" && isUnwanted(before, rules) ? untrueMessage(before, rules) : undefined;
	if (untrue !== undefined) return remove(before, untrue, untrue);
	// Surplus text of a stream can only be removed by an edit, once the stream is closed.
	if (message.at === "open" && message.way === "append" && message.length > before.text.length && rules.canEdit) {
		const closing = reopened(rules, message.id, message.nonce, undefined);
		return stop({ ...before, message: closing }, closing);
	}
	if (message.at === "open" && (message.stopFirst || message.complete)) return stop(before, message);
	const draft: Draft = { ...before, checked: before.text.length };
	const { segment } = segmentOf(draft);
	const view = viewOf(draft, rules);
	if (!view) return step(draft);
	const isBlank = view.markdown.trim() === "" && (view.done || earlyText(draft, rules) === "");
	const unwanted = isUnwanted(draft, rules);
	if (message.at === "ready" && unwanted) {
		// It is this draft's turn again, so the creation before was refused; the outcome of a doubtful one stays unknown.
		return message.doubtful ? giveUp(draft, CANNOT_TELL) : step({ ...draft, calling: undefined });
	}
	if (isBlank && message.at === "open" && unwanted) return remove(draft, message.id, nonceFor(draft, message));
	// Nothing to see in it: wait for more, or go on behind it.
	if (isBlank && message.at !== "lost")
		return step(view.done ? advance(draft, view.length, view.next) : { ...draft, toolsShown: draft.tools });
	switch (message.at) {
		case "none":
			return view.done ? announce(draft, rules, view) : preview(draft, view, rules);
		case "lost": {
			const { placeholder, early } = rules;
			// The message may show the placeholder instead of its text.
			const instead = early && placeholder !== "" && draft.since === 0 ? placeholder : undefined;
			return call(draft, { type: "find", nonce: message.nonce, markdown: view.markdown, instead }, view);
		}
		case "ready": {
			// It had to wait for its turn, and the platform may have forgotten the nonce meanwhile.
			if (message.doubtful && now - (message.triedAt ?? now) >= rules.nonceWindowMs) return giveUp(draft, CANNOT_TELL);
			const tried: Draft = { ...draft, message: { ...message, triedAt: message.triedAt ?? now } };
			if (rules.style === "append") return start(tried, message.nonce, segment, view);
			if (rules.style !== "edit" && !view.done) return step(draft);
			const markdown = decorated(draft, view, rules);
			return call(tried, { type: "create", nonce: message.nonce, markdown, final: view.done }, view);
		}
		case "open":
			return continued(draft, message, segment, view, rules);
		default:
			return message satisfies never;
	}
}

/** The text of the message; undefined while the source has not reached the end that was decided for it. */
function viewOf(draft: Draft, rules: DraftRules): View | undefined {
	const { message } = draft;
	const { segment, ended } = segmentOf(draft);
	const editable = message.at === "open" && message.way === "edit";
	const fixed = message.at === "none" || editable || draft.isErrorText ? undefined : message.fixed;
	if (!fixed) return compose(draft.markdown, segment, ended, rules);
	if (fixed.view) return fixed.view;
	const length = fixed.to - draft.from;
	if (segment.length < length) return ended ? compose(draft.markdown, segment, ended, rules) : undefined;
	const text = segment.slice(0, length);
	return message.at === "open"
		? { length, markdown: text, done: true, next: stateAfter(draft.markdown, text) }
		: compose(draft.markdown, text, true, rules);
}

const call = (draft: Draft, what: DraftCall, { length, done, next }: Omit<Calling, "call">): DraftStep =>
	step({ ...draft, calling: { call: what, length, done, next } }, { type: "call", call: what });

const nonceFor = (draft: Draft, message: OpenMessage): string => message.nonce ?? `${message.id}.${draft.ordinal}`;

function stop(draft: Draft, message: OpenMessage): DraftStep {
	const view = { length: message.length, done: !message.stopFirst, next: message.next };
	return call(draft, { type: "stop", id: message.id, nonce: nonceFor(draft, message) }, view);
}

function preview(draft: Draft, view: View, rules: DraftRules): DraftStep {
	// Styles that show nothing before the end have no turns before it.
	if (rules.style !== "preview") return step(draft);
	const markdown = decorated(draft, view, rules);
	const seen: Draft = { ...draft, toolsShown: draft.tools };
	return call(seen, { type: "preview", ordinal: draft.ordinal + 1, markdown, tools: draft.tools }, view);
}

function remove(draft: Draft, id: string, nonce: string): DraftStep {
	return call(draft, { type: "remove", id, nonce }, { length: 0, done: true, next: draft.markdown });
}

/** With the tools that run, while no text follows and if it fits. */
function decorated(draft: Draft, view: View, rules: DraftRules): string {
	if (rules.toolsApart) return view.markdown;
	const lines = view.done ? "" : toolLines(draft.tools);
	if (view.markdown.trim() === "") return view.done ? "" : earlyText(draft, rules);
	if (lines === "") return view.markdown;
	const both = `${view.markdown}\n\n${lines}`;
	return rules.fits(both) ? both : view.markdown;
}

function continued(draft: Draft, message: OpenMessage, segment: string, view: View, rules: DraftRules): DraftStep {
	switch (message.way) {
		case "append":
			return append(draft, message, segment, view);
		case "fixed":
			// It was created complete, up to what is on record; without a record, as this view: both come from the same source by the same rules.
			return view.done ? sent(draft, view, message, rules) : step(draft);
		case "edit": {
			const markdown = decorated(draft, view, rules);
			const shown: Draft = { ...draft, toolsShown: draft.tools };
			if (!view.done && markdown === message.shown) return step(shown);
			const nonce = nonceFor(draft, message);
			return call(shown, { type: "edit", id: message.id, markdown, final: view.done, nonce }, view);
		}
		default:
			return message.way satisfies never;
	}
}

function start(draft: Draft, nonce: string, segment: string, view: View): DraftStep {
	const length = view.done ? view.length : wordEnd(segment, 0);
	const markdown = view.done ? view.markdown : unclosed(draft.markdown, segment.slice(0, length));
	if (markdown.trim() === "") return step(draft);
	return call(draft, { type: "start", nonce, markdown, final: view.done }, { ...view, length });
}

/** The platform keeps appended text, so a message never ends before it. */
function append(draft: Draft, message: OpenMessage, segment: string, view: View): DraftStep {
	const length = view.done ? Math.max(view.length, message.length) : wordEnd(segment, message.length);
	const next = length === view.length ? view.next : stateAfter(draft.markdown, segment.slice(0, length));
	const raw = segment.slice(message.length, length);
	const ending = view.done ? remainder(draft.markdown, segment.slice(0, length), message.shown) : undefined;
	const markdown = ending ?? (view.done ? raw.trimEnd() : raw);
	if (markdown === "" && view.done) {
		const complete: OpenMessage = { ...message, length, complete: true, next };
		return stop({ ...draft, message: complete }, complete);
	}
	if (markdown === "") return step(draft);
	const what = { type: "append" as const, id: message.id, markdown, final: view.done, nonce: nonceFor(draft, message) };
	return call(draft, what, { length, done: view.done, next });
}

/** A line that opens a fence: nothing to see before the code has begun. */
const OPENER_LINE = /(?:^|\n)[ \t>]*(?:`{3,}|~{3,})[^\n]*\n?$/;

/** Where growing text is cut for appending: after a whole word, without white space or a mere fence opener behind it, so that a full message ends well. */
function wordEnd(text: string, least: number): number {
	const isSpace = (at: number) => /\s/.test(text.charAt(at));
	const trimmed = (from: number) => {
		let end = from;
		while (end > least && isSpace(end - 1)) end--;
		return end;
	};
	const opener = OPENER_LINE.exec(text.slice(least));
	const known = opener ? least + opener.index : text.length;
	let end = known;
	while (end > least && !isSpace(end - 1)) end--;
	const whole = trimmed(end);
	return whole > least ? whole : trimmed(known);
}
