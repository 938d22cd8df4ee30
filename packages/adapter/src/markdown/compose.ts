/** What one platform message says: the longest piece of the held text that fits it, standing alone. */

import { type MarkdownState, START } from "./markdown-state.ts";
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
	next: MarkdownState;
}

/** `markdown` is where `text` begins in the markdown; `ended` = nothing more comes for this message. */
export function compose(markdown: MarkdownState, text: string, ended: boolean, rules: ComposeRules): View {
	if (text === "") return { length: 0, markdown: "", done: ended, next: markdown };
	const { fits, share, guess } = rules;
	const piece = cut(text, 0, { fits, more: !ended, at: markdown, guess, share });
	if (piece) return { length: piece.to, markdown: piece.text, done: true, next: piece.next };
	return { length: text.length, markdown: standalone(text, 0, text.length, markdown), done: false, next: markdown };
}

/** The place after a text. */
export function stateAfter(markdown: MarkdownState, text: string): MarkdownState {
	return cut(text, 0, { fits: () => true, more: false, at: markdown })?.next ?? markdown;
}

const MARK = "\uE000";

/** The text so far without what would close it: more of the source can follow. */
export function unclosed(markdown: MarkdownState, text: string): string {
	const marked = standalone(text + MARK, 0, text.length + MARK.length, markdown);
	const at = marked.lastIndexOf(MARK);
	return at < 0 ? text : marked.slice(0, at);
}

/** What comes after `shown` in a text that stands alone; undefined when it does not begin like that. */
export function remainder(markdown: MarkdownState, text: string, shown: string): string | undefined {
	const alone = standalone(text, 0, text.length, markdown);
	return alone.startsWith(shown) ? alone.slice(shown.length) : undefined;
}

/** A place as the daemon keeps it; undefined where a message would begin anyway. */
export function carryOf(markdown: MarkdownState): string | undefined {
	const plain = markdown.containers.length === 0 && markdown.leaf === "none" && !markdown.inLine;
	return plain ? undefined : JSON.stringify(markdown);
}

/** A carry that cannot be read costs formatting, never text. */
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
