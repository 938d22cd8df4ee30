/** Finds where a message ends: the longest prefix that fits, then the best boundary in it. */

import { graphemeAfter, graphemeAtOrBefore, inlineBoundaries, inlineSpans } from "./boundary.ts";
import { fenceOf, MARKS, readLine } from "./markdown-state.ts";
import type { Outline, OutlineLine } from "./outline.ts";
import { type Decoration, standaloneText, startsBlock } from "./standalone.ts";

export interface SearchOptions {
	fits(text: string): boolean;
	share?(text: string): number;
	more: boolean;
	prefer?: number;
	guess?: number;
}

const GUESS_CHARS = 1500;
/** How far past a cut the end of a link or code span is looked for. */
const SPAN_MAX = 500;
const SHARE_TRIES = 12;
/** How many graphemes are tried before a boundary that needs a guard is taken. */
const GRAPHEME_TRIES = 64;

export interface End {
	to: number;
	/** About the longest prefix that fits. */
	most: number;
}

/** Undefined: no prefix fits with this much decoration. */
export function findEnd(outline: Outline, options: SearchOptions, decoration: Decoration): End | undefined {
	const search = new Search(outline, options, decoration);
	const most = search.longest();
	const to = search.find(most);
	return to === undefined ? undefined : { to, most };
}

/** A grapheme that is longer than a message: as much of it as fits, never half of a surrogate pair. */
export function withinGrapheme(outline: Outline, fits: (text: string) => boolean): number | undefined {
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

/** Ends of lines from the best to the worst; a worse one is taken only when no better one leaves enough. */
const RANKS = ["paragraph", "item", "line", "inner"] as const;
/** Those that tear nothing. */
const OUTER = ["paragraph", "item", "line"] as const;
type BoundaryRank = (typeof RANKS)[number];
type Ends = Record<BoundaryRank, number[]>;

class Search {
	private readonly outline: Outline;
	private readonly options: SearchOptions;
	private readonly decoration: Decoration;
	private readonly from: number;
	private readonly source: string;

	constructor(outline: Outline, options: SearchOptions, decoration: Decoration) {
		this.outline = outline;
		this.options = options;
		this.decoration = decoration;
		this.from = outline.from;
		this.source = outline.source;
	}

	find(longest: number): number | undefined {
		const barrier = this.barrier(longest);
		if (barrier !== undefined && this.fits(barrier)) return barrier;
		if (longest === this.source.length) return longest;
		const first = this.outline.lineAt(this.from);
		// An opener too long to be one: its words are text, what it opens is code again.
		const opener = this.decoration === "none" && first?.kind === "open";
		let most = opener ? Math.min(longest, first.end) : longest;
		// Rendered length is only nearly monotone: when no boundary up to the found length fits, look below it.
		while (most > this.from) {
			for (const to of this.candidates(most)) if (this.fits(to)) return to;
			most = this.from + Math.floor((most - this.from) * 0.8);
		}
		const least = graphemeAfter(this.source, this.from);
		return least < this.source.length && this.allowed(least, false) && this.fits(least) ? least : undefined;
	}

	/**
	 * A list or quote right behind code, rows or a heading of which the beginning is in an earlier message: without it they would take its first line
	 * for one of theirs, so the message ends there.
	 */
	private barrier(most: number): number | undefined {
		const { lines } = this.outline;
		const first = this.outline.lineAt(this.from);
		if (first === undefined) return undefined;
		const inherited = first.before.containers.length;
		let above = first;
		let headless = this.isHeadless(first);
		for (let at = this.outline.indexAt(this.from) + 1; at < lines.length; at += 1) {
			const line = lines[at];
			if (line === undefined || line.start > most) return undefined;
			const code = above.after.leaf === "indented" && line.matched < Math.min(inherited, above.after.containers.length);
			if (line.after.containers.length > line.matched && (headless || code)) return line.start;
			headless &&= isRow(line);
			if (line.kind !== "blank") above = line;
		}
		return undefined;
	}

	private isHeadless({ kind, before, after }: OutlineLine): boolean {
		const { leaf, table, inLine } = before;
		if (leaf === "table") return kind === "row" && (inLine || table === undefined || this.decoration !== "full");
		return kind === "underline" || (inLine && after.leaf === "none" && kind === "text");
	}

	private fits(to: number): boolean {
		return this.options.fits(standaloneText(this.outline, to, this.decoration));
	}

	/** About the longest prefix that fits, by how much of a message others take. */
	private longestByShare(share: (text: string) => number): number {
		const rest = this.source.length - this.from;
		let low = 0;
		let high = rest + 1;
		const guess = Math.max(1, this.options.guess ?? GUESS_CHARS);
		let size = rest <= 2 * guess ? rest : guess;
		for (let tries = 0; tries < SHARE_TRIES && high - low > 1; tries += 1) {
			const taken = share(standaloneText(this.outline, this.from + size, this.decoration));
			if (taken <= 1) low = size;
			else high = size;
			const room = size * (1 - taken);
			if (low === rest || (room >= 0 && room < 1 + (size >> (size < 1024 ? 8 : 5)))) return this.from + low;
			const wanted = Math.floor(size / Math.max(taken, 0.1));
			size = Math.min(rest, Math.max(low + 1, Math.min(wanted, high - 1)));
		}
		return low > 0 ? this.from + low : this.longest(true);
	}

	/** About the longest prefix that fits: gallops from the guess, then halves what is left. Exact when short. */
	longest(exact = false): number {
		if (this.options.share && !exact) return this.longestByShare(this.options.share);
		const rest = this.source.length - this.from;
		const guess = Math.max(1, this.options.guess ?? GUESS_CHARS);
		let low = 0;
		let high = rest + 1;
		let size = rest <= 2 * guess ? rest : guess;
		while (high - low > 1 + (low >> 8)) {
			if (this.fits(this.from + size)) {
				low = size;
				if (size === rest) return this.source.length;
				size = high > rest ? Math.min(rest, size * 2) : (low + high) >> 1;
			} else {
				high = size;
				size = (low + high) >> 1;
			}
		}
		return this.from + low;
	}

	/** Where to cut, the best first. */
	private *candidates(most: number): Generator<number> {
		const length = most - this.from;
		const floor = this.from + Math.min(this.options.prefer ?? Math.ceil(length / 2), length);
		const before = this.beforeBlock(most);
		if (before !== undefined) yield before;
		const ends = this.lineEnds(most);
		const low = this.options.prefer === undefined ? this.from + length / 3 : floor;
		for (const least of [floor, low]) {
			for (const rank of OUTER) for (const to of ends[rank]) if (to >= least) yield to;
		}
		for (const to of ends.inner) if (to >= floor) yield to;
		yield* this.inline(floor, most, "whole");
		const least = Math.ceil(this.from + length / 8);
		const early = RANKS.flatMap((rank) => ends[rank]).filter((to) => to < floor && to > least);
		yield* early.sort((one, other) => other - one);
		yield* this.inline(least, floor, "whole");
		yield* this.inline(least, most, "torn");
		yield* this.graphemes(most);
	}

	/** A table or fenced block that would be torn, but fits a message of its own: the cut goes before it, and before its heading. */
	private beforeBlock(most: number): number | undefined {
		const { lines } = this.outline;
		const torn = this.outline.lineAt(most);
		if (torn === undefined) return undefined;
		this.outline.reach(torn.end);
		const table = isRow(torn);
		if (!table && fenceOf(torn.before) === undefined) return undefined;
		let index = this.outline.indexAt(most);
		const inside = (line: OutlineLine | undefined) =>
			line !== undefined && (table ? isRow(line) : line.kind !== "open");
		while (index > 0 && inside(table ? lines[index - 1] : lines[index])) index -= 1;
		const begins = lines[index];
		if (begins === undefined || begins.before.inLine || (!table && begins.kind !== "open")) return undefined;
		if (!this.fitsAlone(index, most - this.from, table)) return undefined;
		const start = this.withHeading(index);
		const enough = table ? 1 : (most - this.from) / 4;
		return start - this.from >= enough && standaloneText(this.outline, start, this.decoration) !== ""
			? start
			: undefined;
	}

	private fitsAlone(index: number, charsMax: number, table: boolean): boolean {
		const { lines } = this.outline;
		const start = lines[index]?.start ?? 0;
		let last = index;
		for (;;) {
			const line = lines[last];
			if (line === undefined) return false;
			if (line.end - start > charsMax * 1.5) return false;
			this.outline.reach(line.end);
			const next = lines[last + 1];
			if (line.kind === "close" || next === undefined || (table && !isRow(next))) {
				return this.options.fits(this.source.slice(start, line.end));
			}
			last += 1;
		}
	}

	private withHeading(index: number): number {
		const { lines } = this.outline;
		let above = index - 1;
		while (above > 0 && lines[above]?.kind === "blank") above -= 1;
		let line = lines[above];
		if (line?.kind === "underline") line = lines[above - 1];
		else if (line?.kind !== "heading") line = lines[index];
		return line === undefined ? this.from : line.start;
	}

	private lineEnds(most: number): Ends {
		const ends: Ends = { paragraph: [], item: [], line: [], inner: [] };
		const { lines } = this.outline;
		this.outline.reach(this.outline.lineAt(most)?.end ?? most);
		for (let index = this.outline.indexAt(most); index > 0; index -= 1) {
			const next = lines[index];
			if (next === undefined || next.start > most) continue;
			const rank = rankBefore(lines, index, this.decoration);
			if (rank !== undefined) ends[rank].push(next.start);
		}
		return ends;
	}

	/** Between sentences, then between words, last first: those that leave links, code spans and the like whole, or those that tear them. */
	private *inline(from: number, to: number, spans: "whole" | "torn"): Generator<number> {
		const words: number[] = [];
		for (let index = this.outline.indexAt(to); index >= 0; index -= 1) {
			const line = this.outline.lines[index];
			if (line === undefined || line.start >= to) continue;
			if (line.textEnd <= from) break;
			const found = inlineBoundaries(this.source, Math.max(line.start, from), Math.min(line.textEnd, to));
			const wanted = this.spanFilter(line, to, spans);
			if (line.kind !== "code") {
				for (const at of found.sentences) if (wanted(at) && this.allowed(at, true)) yield at;
			}
			for (const at of found.words) if (wanted(at)) words.push(at);
		}
		for (const at of words) if (this.allowed(at, true)) yield at;
	}

	private spanFilter(line: OutlineLine, to: number, spans: "whole" | "torn"): (at: number) => boolean {
		const end = Math.min(line.textEnd, to + SPAN_MAX);
		const found = line.kind === "code" ? [] : inlineSpans(this.source.slice(line.start, end));
		const tears = (at: number) => found.some(([begin, past]) => begin + line.start < at && at < past + line.start);
		return (at) => tears(at) === (spans === "torn");
	}

	private *graphemes(most: number): Generator<number> {
		for (const strict of [true, false]) {
			let at = most;
			for (let tries = 0; tries < GRAPHEME_TRIES; tries += 1) {
				at = graphemeAtOrBefore(this.source, at, this.from);
				if (at <= this.from) break;
				if (this.allowed(at, strict)) yield at;
				at -= 1;
			}
		}
	}

	/** Whether both sides of a cut within a line still mean what they meant. Strict: without a guard. */
	private allowed(to: number, strict: boolean): boolean {
		const line = this.outline.lineAt(to);
		if (line === undefined || to <= line.start || this.decoration === "none") return true;
		if (line.kind === "open" || line.kind === "close") return false;
		const head = this.source.slice(line.start, Math.min(to, line.textEnd));
		const rest = this.source.slice(to, line.textEnd);
		const open = line.textEnd === this.source.length && this.options.more;
		const fence = fenceOf(line.before);
		if (!line.before.inLine && head.replace(MARKS, "") === "") return false;
		const before = { ...line.before, inLine: false, ...(line.before.inLine ? { containers: [] } : {}) };
		if (fence !== undefined) {
			const marks = rest.slice(0, 200).trim();
			const closes = marks !== "" && marks.replaceAll(fence.mark, "") === "";
			return !closes && !(open && marks === "") && readLine(before, head).kind === "code";
		}
		if (!line.before.inLine && readLine(before, head).kind === "open") return false;
		return !strict || !(startsBlock(rest) || (open && /^[`~]{0,2}$/.test(rest)));
	}
}

const isRow = (line: OutlineLine): boolean => line.kind === "row" || line.kind === "delimiter";

/** How good a cut before the line is; undefined: not there. */
function rankBefore(lines: readonly OutlineLine[], index: number, decoration: Decoration): BoundaryRank | undefined {
	const next = lines[index];
	const last = lines[index - 1];
	if (next === undefined || last === undefined || next.kind === "blank" || next.kind === "underline") return undefined;
	if (last.kind === "open") return decoration === "none" ? "inner" : undefined;
	if (fenceOf(next.before) !== undefined) return next.kind === "close" ? undefined : "line";
	if (isRow(next) && isRow(last)) return "inner";
	let above = index - 1;
	while (above > 0 && lines[above]?.kind === "blank") above -= 1;
	if (lines[above]?.kind === "heading" || lines[above]?.kind === "underline") return "inner";
	if (next.kind === "item") return "item";
	if (next.before.containers.slice(0, next.matched).some((each) => each.kind === "item")) return "inner";
	const apart = last.kind === "blank" || last.kind === "close";
	return apart || next.kind === "heading" || next.kind === "open" || next.kind === "rule" ? "paragraph" : "line";
}
