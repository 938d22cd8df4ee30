/** What one platform message says: the longest piece of the held text that fits it, standing alone. */

import { type Place, START } from "./place.ts";
import { cut, standalone } from "./split.ts";

export interface ComposeRules {
	fits(markdown: string): boolean;
	/** How much of a message a text takes. */
	share?(markdown: string): number;
	/** About how many characters fit: saves tries. */
	guess: number;
}

export interface View {
	/** Units of the text that the message shows. */
	length: number;
	/** Code fences that the piece is inside of are opened and closed. Empty when there is nothing to see. */
	markdown: string;
	/** Nothing more goes into this message. */
	done: boolean;
	/** The place of what follows. */
	next: Place;
}

/** `place` is where `text` begins in the markdown; `ended` = nothing more comes for this message. */
export function compose(place: Place, text: string, ended: boolean, rules: ComposeRules): View {
	if (text === "") return { length: 0, markdown: "", done: ended, next: place };
	const { fits, share, guess } = rules;
	const piece = cut(text, 0, { fits, more: !ended, at: place, guess, ...(share && { share }) });
	if (piece) return { length: piece.to, markdown: piece.text, done: true, next: piece.next };
	return { length: text.length, markdown: standalone(text, 0, text.length, place), done: false, next: place };
}

const MARK = "\uE000";

/** The text so far without what would close it: more of the source can follow. */
export function unclosed(place: Place, text: string): string {
	const marked = standalone(text + MARK, 0, text.length + MARK.length, place);
	const at = marked.lastIndexOf(MARK);
	return at < 0 ? text : marked.slice(0, at);
}

/** What comes after `shown` in a text that stands alone; undefined when it does not begin like that. */
export function remainder(place: Place, text: string, shown: string): string | undefined {
	const alone = standalone(text, 0, text.length, place);
	return alone.startsWith(shown) ? alone.slice(shown.length) : undefined;
}

/** A place as the daemon keeps it; undefined where a message would begin anyway. */
export function carryOf(place: Place): string | undefined {
	const plain = place.containers.length === 0 && place.leaf === "none" && !place.inLine;
	return plain ? undefined : JSON.stringify(place);
}

/** A carry that cannot be read costs formatting, never text. */
export function placeOf(carry: string | undefined): Place {
	if (carry === undefined) return START;
	try {
		const { containers, leaf, inLine, cells, table } = JSON.parse(carry);
		const head = typeof table === "string" ? { table } : {};
		return Array.isArray(containers)
			? { containers, leaf, inLine: inLine === true, cells: Number(cells) || 0, ...head }
			: START;
	} catch {
		return START;
	}
}
