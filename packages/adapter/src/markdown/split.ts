/**
 * Cuts a long markdown source into messages. The ranges are contiguous and cover the source; each text stands on its own: it fits,
 * its fences are whole, and it differs from its range only by white space at its ends, fence decoration, a table's head again, and the marks
 * of a list item that began earlier.
 */

import { NexusError } from "@nexus-stream/protocol";
import { type MarkdownState, START } from "./markdown-state.ts";
import { Outline } from "./outline.ts";
import { findEnd, withinGrapheme } from "./search.ts";
import { standaloneText } from "./standalone.ts";

export type { MarkdownState } from "./markdown-state.ts";

export interface CutOptions {
	/** Whether a message with this markdown is short enough; rendering and measuring are the caller's. */
	fits(text: string): boolean;
	/** How much of a message a text takes, 1 = all of it: saves tries, which matters where measuring means rendering. */
	share?(text: string): number;
	/** The source still grows: nothing is cut while all of it fits. */
	more: boolean;
	/** A boundary that leaves at least this many characters is good; default: half of what fits. */
	prefer?: number;
	/** About how many characters fit: saves tries. */
	guess?: number;
	/** The place at `from`, from the cut before. Without it the source must begin at its true start, and is read from there. */
	at?: MarkdownState;
}

export type SplitRules = Pick<CutOptions, "fits" | "share">;

export interface MarkdownCut {
	to: number;
	/** Empty when the range shows nothing (white space only): there is no message to send for it. */
	text: string;
	/** The place at `to`, for the next cut. */
	next: MarkdownState;
}

/** The longest good message that begins at `from`; undefined when nothing is left, or all of it fits and more is to come. */
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
		// Mostly decoration: try with less of it, and keep this in case that is no better.
		if (to === source.length || decoration <= 2 * (most - from)) return piece;
		least ??= piece;
	}
	if (least !== undefined) return least;
	const to = withinGrapheme(outline, options.fits);
	if (to !== undefined) return { to, text: standaloneText(outline, to, "none"), next: outline.stateAt(to) };
	throw new NexusError("invalid", "The message limit is too small for a single character of the text: raise it.");
}

/** The text of a range on its own, as `cut` makes it: for a draft that still grows. */
export function standalone(source: string, from: number, to = source.length, at?: MarkdownState): string {
	return standaloneText(new Outline(source, from, at ?? stateAt(source, from)), to, "full");
}

/** The place of a position, read from the start of the source. */
export function stateAt(source: string, position: number): MarkdownState {
	return position <= 0 ? START : new Outline(source, 0, START).stateAt(position);
}

export interface TextPiece {
	from: number;
	to: number;
	text: string;
}

/** From `begin` on; one of the ends that splitting all of it gave, so that the rest is cut as it was then. */
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
		const sized = { guess, share };
		const piece = cut(source, from, { fits, more: false, at, ...sized });
		if (piece === undefined) return pieces;
		pieces.push({ from, to: piece.to, text: piece.text });
		from = piece.to;
		at = piece.next;
	}
}
