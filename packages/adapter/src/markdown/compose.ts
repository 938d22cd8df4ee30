/** Composes one platform message: the longest piece of the held text that fits, as markdown that stands alone. */

import type { FitRules } from "./fit.ts";
import { type MarkdownState, START } from "./markdown-state.ts";
import { cut, standalone } from "./split.ts";

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
	const piece = cut(text, 0, { fits, more: !ended, at: markdown, guess, share });
	if (piece) return { length: piece.to, markdown: piece.text, done: true, next: piece.next };
	return { length: text.length, markdown: standalone(text, 0, text.length, markdown), done: false, next: markdown };
}

const MARK = "\uE000";

/** The text so far without closing marks, so that more of the source can be appended. */
export function unclosed(markdown: MarkdownState, text: string): string {
	const marked = standalone(text + MARK, 0, text.length + MARK.length, markdown);
	const at = marked.lastIndexOf(MARK);
	return at < 0 ? text : marked.slice(0, at);
}

/** The rest of the standalone text behind `shown`; undefined if the text does not begin with `shown`. */
export function remainder(markdown: MarkdownState, text: string, shown: string): string | undefined {
	const alone = standalone(text, 0, text.length, markdown);
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
		const head = typeof table === "string" ? { table } : {};
		return Array.isArray(containers)
			? { containers, leaf, inLine: inLine === true, cells: Number(cells) || 0, ...head }
			: START;
	} catch {
		return START;
	}
}
