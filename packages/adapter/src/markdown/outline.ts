/** The lines of a source from a position on, read as far as somebody asked, each with its place in the markdown's structure. */

import { type LineKind, type MarkdownState, readLine, readRest, stateInLine } from "./markdown-state.ts";

export interface OutlineLine {
	start: number;
	/** After the line end. */
	end: number;
	/** Before the line end. */
	textEnd: number;
	kind: LineKind;
	before: MarkdownState;
	after: MarkdownState;
	lazy: boolean;
	matched: number;
}

export class Outline {
	readonly source: string;
	readonly from: number;
	readonly lines: OutlineLine[] = [];
	private markdown: MarkdownState;
	private position: number;
	private returnAt = -2;

	constructor(source: string, from: number, markdown: MarkdownState) {
		this.source = source;
		this.from = from;
		this.markdown = markdown;
		this.position = from;
	}

	/** Reads on until the line that holds `position` is known. */
	reach(position: number): void {
		while (this.position <= position && this.position < this.source.length) this.readNext();
	}

	/** The line that holds `position`; undefined at the end of the source. */
	lineAt(position: number): OutlineLine | undefined {
		this.reach(position);
		const index = this.indexAt(position);
		return index < this.lines.length ? this.lines[index] : undefined;
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
		if (line === undefined) return this.markdown;
		if (position <= line.start) return line.before;
		return stateInLine(line.before, this.source.slice(line.start, position), line);
	}

	/** Where the open line ends: after `\n`, `\r\n` or a lone `\r`. */
	private lineEnd(): { textEnd: number; end: number } {
		const { source, position } = this;
		if (this.returnAt !== -1 && this.returnAt < position) this.returnAt = source.indexOf("\r", position);
		const feed = source.indexOf("\n", position);
		const back = this.returnAt;
		if (back !== -1 && (feed === -1 || back < feed))
			return { textEnd: back, end: feed === back + 1 ? feed + 1 : back + 1 };
		return feed === -1 ? { textEnd: source.length, end: source.length } : { textEnd: feed, end: feed + 1 };
	}

	private readNext(): void {
		const { source, position: start, markdown: before } = this;
		const { textEnd, end } = this.lineEnd();
		const read = before.inLine
			? readRest(before, source.slice(start, textEnd))
			: readLine(before, source.slice(start, textEnd));
		const { kind, after, lazy, matched } = read;
		if (kind === "delimiter") {
			const head = this.lines.at(-1);
			if (head !== undefined) head.kind = "row";
		}
		this.lines.push({ start, end, textEnd, kind, before, after, lazy, matched });
		this.markdown = end === textEnd ? stateInLine(before, source.slice(start, end), read) : after;
		this.position = end;
	}
}
