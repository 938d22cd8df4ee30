/** Cuts a long markdown source into messages: the ranges are contiguous and cover the source, and each text fits and stands alone (`standaloneText`). */

import { NexusError } from "@nexus-stream/protocol";
import { type FitRules, withinGrapheme } from "./fit.ts";
import { type MarkdownState, START } from "./markdown-state.ts";
import { Outline, stateAt } from "./outline.ts";
import { findEnd, type SearchRules } from "./search.ts";
import { standaloneText } from "./standalone.ts";

export type { MarkdownState } from "./markdown-state.ts";

export interface CutOptions extends SearchRules {
	/** The state at `from`, as the cut before returned it. Without it the source is read from its beginning. */
	at?: MarkdownState;
}

export interface MarkdownCut {
	to: number;
	/** Empty when the range contains only white space: the caller sends no message for it. */
	text: string;
	/** The state at `to`, for the next cut. */
	next: MarkdownState;
}

/** The longest good message that begins at `from`; undefined if nothing is left, or if all of it fits and more will come. */
export function cut(source: string, from: number, options: CutOptions): MarkdownCut | undefined {
	if (from >= source.length) return undefined;
	const outline = new Outline(source, from, options.at ?? stateAt(source, from));
	let least: MarkdownCut | undefined;
	for (const dress of ["full", "plain", "none"] as const) {
		const found = findEnd(outline, options, dress);
		if (found === undefined) continue;
		const { to, most } = found;
		if (to === source.length && options.more) return undefined;
		const piece = { to, text: standaloneText(outline, to, dress), next: outline.stateAt(to) };
		const decoration = piece.text.length - (to - from);
		// Mostly decoration: try with less, and keep this result in case that fails.
		if (to === source.length || decoration <= 2 * (most - from)) return piece;
		least ??= piece;
	}
	if (least !== undefined) return least;
	const to = withinGrapheme(outline, options);
	if (to !== undefined) return { to, text: standaloneText(outline, to, "none"), next: outline.stateAt(to) };
	throw new NexusError("invalid", "The message limit is too small for a single character of the text: raise it.");
}

/** All of a text as `cut` writes it, for a draft that still grows. `markdown` is the state at its beginning. */
export const standalone = (text: string, markdown = START): string =>
	standaloneText(new Outline(text, 0, markdown), text.length, "full");

export interface TextPiece {
	from: number;
	to: number;
	text: string;
}

/** Splits the source from `begin` on. If `begin` is the end of a piece of an earlier split, the rest is cut as it was then. */
export function splitAll(source: string, rules: FitRules, begin = 0): TextPiece[] {
	const pieces: TextPiece[] = [];
	let from = begin;
	let at = stateAt(source, begin);
	for (;;) {
		const piece = cut(source, from, { ...rules, more: false, at });
		if (piece === undefined) return pieces;
		pieces.push({ from, to: piece.to, text: piece.text });
		from = piece.to;
		at = piece.next;
	}
}

/** The part of a growing text that one message shows. */
export interface View {
	/** How many UTF-16 units of the text the message shows. */
	length: number;
	/** Opens and closes the code fences that the piece is inside. Empty if the piece shows nothing. */
	markdown: string;
	/** Nothing more goes into this message. */
	done: boolean;
	/** The state behind the piece. */
	next: MarkdownState;
}

/** `markdown` is the state at the beginning of `text`; `ended`: this message gets no more text. */
export function compose(markdown: MarkdownState, text: string, ended: boolean, rules: FitRules): View {
	if (text === "") return { length: 0, markdown: "", done: ended, next: markdown };
	const { fits, share, guess } = rules;
	const piece = cut(text, 0, { fits, share, guess, more: !ended, at: markdown });
	if (piece) return { length: piece.to, markdown: piece.text, done: true, next: piece.next };
	return { length: text.length, markdown: standalone(text, markdown), done: false, next: markdown };
}

const MARK = "\uE000";

/** The text so far without closing marks, so that more of the source can be appended. */
export function unclosed(markdown: MarkdownState, text: string): string {
	const marked = standalone(text + MARK, markdown);
	const at = marked.lastIndexOf(MARK);
	return at < 0 ? text : marked.slice(0, at);
}

/** The rest of the standalone text behind `shown`; undefined if the text does not begin with `shown`. */
export function remainder(markdown: MarkdownState, text: string, shown: string): string | undefined {
	const alone = standalone(text, markdown);
	return alone.startsWith(shown) ? alone.slice(shown.length) : undefined;
}

/** A state as the daemon stores it; undefined for the state at the beginning of a message. */
export function carryOf(markdown: MarkdownState): string | undefined {
	const plain = markdown.containers.length === 0 && markdown.leaf === "none" && !markdown.inLine;
	return plain ? undefined : JSON.stringify(markdown);
}

/** An unreadable carry costs formatting, never text. */
export function markdownStateOf(carry: string | undefined): MarkdownState {
	if (carry === undefined) return START;
	try {
		const { containers, leaf, inLine, cells, table } = JSON.parse(carry);
		if (!Array.isArray(containers)) return START;
		const head = typeof table === "string" ? { table } : {};
		return { containers, leaf, inLine: inLine === true, cells: Number(cells) || 0, ...head };
	} catch {
		return START;
	}
}
