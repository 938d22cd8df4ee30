/**
 * Cuts a long markdown source into messages. The ranges are contiguous and cover the source. Each text fits and stands alone: its fences are
 * whole, and it differs from its range only in white space at its ends, fence marks, a repeated table head, escapes at its beginning, and the
 * indentation of a list item that began earlier.
 */

import { NexusError } from "@nexus-stream/protocol";
import { graphemeAfter } from "./boundary.ts";
import type { MarkdownState } from "./markdown-state.ts";
import { Outline, stateAt } from "./outline.ts";
import { findEnd } from "./search.ts";
import { standaloneText } from "./standalone.ts";

export type { MarkdownState } from "./markdown-state.ts";

export interface CutOptions {
	/** Whether a message with this markdown is short enough; the caller renders and measures it. */
	fits(text: string): boolean;
	/** Share of a message that a text takes, 1 = all of it. Saves tries, each of which may render the text. */
	share?(text: string): number;
	/** The source still grows, so nothing is cut while all of it fits. */
	more: boolean;
	/** A boundary that leaves at least this many characters is good; default: half of what fits. */
	prefer?: number;
	/** About how many characters fit; saves tries. */
	guess?: number;
	/** The state at `from`, as the cut before returned it. Without it the source is read from its beginning. */
	at?: MarkdownState;
}

export type SplitRules = Pick<CutOptions, "fits" | "share">;

export interface MarkdownCut {
	to: number;
	/** Empty when the range shows nothing (white space only): there is no message to send for it. */
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
	const to = withinGrapheme(outline, options.fits);
	if (to !== undefined) return { to, text: standaloneText(outline, to, "none"), next: outline.stateAt(to) };
	throw new NexusError("invalid", "The message limit is too small for a single character of the text: raise it.");
}

/** Cuts a grapheme that is longer than a message: as much of it as fits, never half of a surrogate pair. */
function withinGrapheme(outline: Outline, fits: (text: string) => boolean): number | undefined {
	const { source, from } = outline;
	let low = 0;
	let high = graphemeAfter(source, from) - from;
	while (high - low > 1) {
		const middle = (low + high) >> 1;
		if (fits(standaloneText(outline, from + middle, "none"))) low = middle;
		else high = middle;
	}
	const last = source.charCodeAt(from + low - 1);
	const to = from + low - (last >= 0xd800 && last <= 0xdbff ? 1 : 0);
	return to > from ? to : undefined;
}

/** The text of a range as `cut` writes it, for a draft that still grows. */
export function standalone(source: string, from: number, to = source.length, at?: MarkdownState): string {
	return standaloneText(new Outline(source, from, at ?? stateAt(source, from)), to, "full");
}

export interface TextPiece {
	from: number;
	to: number;
	text: string;
}

/** Splits the source from `begin` on. If `begin` is the end of a piece of an earlier split, the rest is cut as it was then. */
export function splitAll(
	source: string,
	rules: SplitRules | SplitRules["fits"],
	guess?: number,
	begin = 0,
): TextPiece[] {
	const { fits, share } = typeof rules === "function" ? { fits: rules, share: undefined } : rules;
	const pieces: TextPiece[] = [];
	let from = begin;
	let at: MarkdownState = stateAt(source, begin);
	for (;;) {
		const piece = cut(source, from, { fits, share, guess, more: false, at });
		if (piece === undefined) return pieces;
		pieces.push({ from, to: piece.to, text: piece.text });
		from = piece.to;
		at = piece.next;
	}
}
