/** Reads the lines of a source from a position on, as far as the caller needs them, each with its place in the markdown's structure. */

import { fenceOf, type LineKind, type Place, placeInLine, readLine, readRest, START } from "./place.ts";

export interface Line {
	start: number;
	/** After the line end. */
	end: number;
	/** Before the line end. */
	textEnd: number;
	kind: LineKind;
	before: Place;
	after: Place;
	lazy: boolean;
	matched: number;
}

export class Outline {
	readonly source: string;
	readonly from: number;
	readonly lines: Line[] = [];
	private place: Place;
	private position: number;
	private returnAt = -2;

	constructor(source: string, from: number, place: Place) {
		this.source = source;
		this.from = from;
		this.place = place;
		this.position = from;
	}

	/** Reads on until the line that holds `position` is known. */
	reach(position: number): void {
		while (this.position <= position && this.position < this.source.length) this.readNext();
	}

	/** The line that holds `position`; undefined at the end of the source. */
	lineAt(position: number): Line | undefined {
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

	placeAt(position: number): Place {
		const line = this.lineAt(position);
		if (line === undefined) return this.place;
		if (position <= line.start) return line.before;
		return placeInLine(line.before, this.source.slice(line.start, position), line);
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
		const { source, position: start, place: before } = this;
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
		this.place = end === textEnd ? placeInLine(before, source.slice(start, end), read) : after;
		this.position = end;
	}
}

/** The place at a position of a source that begins at `start`. */
export function placeAt(source: string, position: number, start = START): Place {
	return position <= 0 ? start : new Outline(source, 0, start).placeAt(position);
}

/** The place after all of a text that begins at `place`. */
export const placeAfter = (place: Place, text: string): Place => placeAt(text, text.length, place);

/** Whether what follows is code of a fence that is still open. */
export const isInFence = (place: Place): boolean => fenceOf(place) !== undefined;

/** The beginning of a line decides what it is; the rest of a long line is not held. */
const LINE_CHARS_MAX = 200;

/** Tells whether a text that arrives in pieces is inside a code fence, where ending a message would tear the code. */
export class FenceWatch {
	/** The place before the line that is still arriving. */
	#place = START;
	#line = "";

	push(text: string): void {
		const held = this.#line + text;
		const complete = held.lastIndexOf("\n") + 1;
		this.#place = placeAfter(this.#place, held.slice(0, complete));
		this.#line = held.slice(complete, complete + LINE_CHARS_MAX);
	}

	/** A new text begins. */
	reset(): void {
		this.#place = START;
		this.#line = "";
	}

	get inside(): boolean {
		return isInFence(this.#place) || isInFence(placeAfter(this.#place, this.#line));
	}
}
