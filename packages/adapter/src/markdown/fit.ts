/** Finds how much of a text fits a message. */

import { graphemeAfter } from "./boundary.ts";
import type { Outline } from "./outline.ts";
import { type Decoration, standaloneText } from "./standalone.ts";

export interface FitRules {
	/** Whether a message with this markdown is short enough; the caller renders and measures it. */
	fits(text: string): boolean;
	/** Share of a message that a text takes, 1 = all of it. Saves tries, each of which may render the text. */
	share?(text: string): number;
	/** About how many characters fit; saves tries. */
	guess?: number;
}

const GUESS_CHARS = 1500;
const SHARE_TRIES = 12;

/** Returns the end of about the longest prefix that fits; exact for short texts. */
export function longestPrefix(outline: Outline, rules: FitRules, decoration: Decoration): number {
	const { fits, share, guess = GUESS_CHARS } = rules;
	const { source, from } = outline;
	const rest = source.length - from;
	const first = rest <= 2 * guess ? rest : Math.max(1, guess);
	const textOf = (size: number) => standaloneText(outline, from + size, decoration);
	const scaled = share ? longestByShare((size) => share(textOf(size)), first, rest) : 0;
	return from + (scaled || longestByTrial((size) => fits(textOf(size)), first, rest));
}

/** Scales the size by the share of a message that each try takes. Returns 0 if no try fits. */
function longestByShare(share: (size: number) => number, first: number, rest: number): number {
	let low = 0;
	let high = rest + 1;
	let size = first;
	for (let tries = 0; tries < SHARE_TRIES && high - low > 1; tries += 1) {
		const taken = share(size);
		if (taken <= 1) low = size;
		else high = size;
		const room = size * (1 - taken);
		if (low === rest || (room >= 0 && room < 1 + (size >> (size < 1024 ? 8 : 5)))) break;
		const wanted = Math.floor(size / Math.max(taken, 0.1));
		size = Math.min(rest, Math.max(low + 1, Math.min(wanted, high - 1)));
	}
	return low;
}

/** Doubles the size while it fits, then bisects. */
function longestByTrial(fits: (size: number) => boolean, first: number, rest: number): number {
	let low = 0;
	let high = rest + 1;
	let size = first;
	while (low < rest && high - low > 1 + (low >> 8)) {
		if (fits(size)) low = size;
		else high = size;
		size = high > rest ? Math.min(rest, size * 2) : (low + high) >> 1;
	}
	return low;
}

/** Cuts a grapheme that is longer than a message: as much of it as fits, never half of a surrogate pair. */
export function withinGrapheme(outline: Outline, { fits }: FitRules): number | undefined {
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
