/** Reads the lines of a source from a position on, as far as the caller needs them, each with the markdown's state before and after it. */

import {
	fenceOf,
	keptHead,
	type LineKind,
	type LineRead,
	MARKS,
	type MarkdownState,
	readLine,
	START,
} from "./markdown-state.ts";

export interface OutlineLine extends LineRead {
	start: number;
	/** Position after the line end. */
	end: number;
	/** Position before the line end. */
	textEnd: number;
	before: MarkdownState;
}

export class Outline {
	readonly source: string;
	readonly from: number;
	readonly lines: OutlineLine[] = [];
	#markdown: MarkdownState;
	#position: number;
	#returnAt = -2;

	constructor(source: string, from: number, markdown: MarkdownState) {
		this.source = source;
		this.from = from;
		this.#markdown = markdown;
		this.#position = from;
	}

	/** Reads until the line that holds `position` is known. */
	reach(position: number): void {
		while (this.#position <= position && this.#position < this.source.length) this.#readNext();
	}

	/** The line that holds `position`; undefined at the end of the source. */
	lineAt(position: number): OutlineLine | undefined {
		return this.lines[this.indexAt(position)];
	}

	/** Index of the first line that ends after `position`. */
	indexAt(position: number): number {
		this.reach(position);
		let low = 0;
		let high = this.lines.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if ((this.lines[middle]?.end ?? 0) > position) high = middle;
			else low = middle + 1;
		}
		return low;
	}

	stateAt(position: number): MarkdownState {
		const line = this.lineAt(position);
		if (line === undefined) return this.#markdown;
		if (position <= line.start) return line.before;
		return stateInLine(line.before, this.source.slice(line.start, position), line);
	}

	/** Finds the end of the next line: `\n`, `\r\n` or a lone `\r`. */
	#lineEnd(): { textEnd: number; end: number } {
		const { source } = this;
		const position = this.#position;
		if (this.#returnAt !== -1 && this.#returnAt < position) this.#returnAt = source.indexOf("\r", position);
		const feed = source.indexOf("\n", position);
		const back = this.#returnAt;
		if (back !== -1 && (feed === -1 || back < feed))
			return { textEnd: back, end: feed === back + 1 ? feed + 1 : back + 1 };
		return feed === -1 ? { textEnd: source.length, end: source.length } : { textEnd: feed, end: feed + 1 };
	}

	#readNext(): void {
		const { source } = this;
		const start = this.#position;
		const before = this.#markdown;
		const { textEnd, end } = this.#lineEnd();
		const text = source.slice(start, textEnd);
		const read = before.inLine ? readRest(before, text) : readLine(before, text);
		const above = this.lines.at(-1);
		if (read.kind === "delimiter" && above !== undefined) above.kind = "row";
		this.lines.push({ start, end, textEnd, before, ...read });
		this.#markdown = end === textEnd ? stateInLine(before, text, read) : read.after;
		this.#position = end;
	}
}

/** A line whose kind is still open after so many characters is read as it stands. */
const HEAD_CHARS_MAX = 200;

/** The state inside a line, behind `begun`; the line began in the state `before`. */
function stateInLine(before: MarkdownState, begun: string, { kind, after }: LineRead): MarkdownState {
	const text = (before.head?.text ?? "") + begun;
	const start = before.head?.before ?? before;
	const { head: _, ...markdown } = after;
	const open = text.length <= HEAD_CHARS_MAX && !start.inLine && isUndecided(start, text, kind);
	return { ...markdown, inLine: true, ...(open && { head: { text, before: start } }) };
}

/** True while the line has only marks, or marks that are a fence's or could become one. */
function isUndecided(before: MarkdownState, text: string, kind: LineKind): boolean {
	if (kind === "open" || kind === "close" || text.replace(MARKS, "") === "") return true;
	const mark = fenceOf(before)?.mark ?? text.at(-1);
	if ((mark !== "`" && mark !== "~") || !text.endsWith(mark)) return false;
	const more = readLine(before, text + mark.repeat(fenceOf(before)?.length ?? 2)).kind;
	return more === "open" || more === "close";
}

/** Reads the rest of a line. Its beginning has decided the line's kind, unless it was too short. */
function readRest(markdown: MarkdownState, rest: string): LineRead {
	const { head, ...known } = markdown;
	const matched = markdown.containers.length;
	if (head === undefined) {
		const kind = fenceOf(markdown) ? "code" : markdown.leaf === "table" ? "row" : "text";
		const { table, ...bare } = known;
		// The beginning of the line is in an earlier message, so it cannot be a table's head.
		const after = { ...bare, inLine: false, ...(kind === "row" && keptHead(table)) };
		return { kind, after, lazy: false, matched };
	}
	const read = readLine(head.before, head.text + rest);
	return { ...read, lazy: false, matched: head.text.trim() === "" ? read.matched : matched };
}

/** The state at a position of a source that begins with `start`. */
export function stateAt(source: string, position: number, start = START): MarkdownState {
	return position <= 0 ? start : new Outline(source, 0, start).stateAt(position);
}

/** The state after all of a text that begins with `state`. */
export const stateAfter = (state: MarkdownState, text: string): MarkdownState => stateAt(text, text.length, state);

/** Whether what follows is code of a fence that is still open. */
export const isInFence = (state: MarkdownState): boolean => fenceOf(state) !== undefined;

/** The beginning of a line decides what it is; the rest of a long line is not held. */
const LINE_CHARS_MAX = 200;

/** Tells whether a text that arrives in pieces is inside a code fence, where ending a message would tear the code. */
export class FenceWatch {
	/** The state before the line that is still arriving. */
	#state = START;
	#line = "";

	push(text: string): void {
		const held = this.#line + text;
		const complete = held.lastIndexOf("\n") + 1;
		this.#state = stateAfter(this.#state, held.slice(0, complete));
		this.#line = held.slice(complete, complete + LINE_CHARS_MAX);
	}

	/** A new text begins. */
	reset(): void {
		this.#state = START;
		this.#line = "";
	}

	get inside(): boolean {
		return isInFence(this.#state) || isInFence(stateAfter(this.#state, this.#line));
	}
}
