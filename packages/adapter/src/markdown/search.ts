/** Finds where a message ends: at the best boundary in the longest prefix that fits. */

import { graphemeAfter, graphemeAtOrBefore, inlineBoundaries, inlineSpans } from "./boundary.ts";
import { type FitRules, longestPrefix } from "./fit.ts";
import { fenceOf, MARKS, readLine } from "./markdown-state.ts";
import type { Outline, OutlineLine } from "./outline.ts";
import { type Decoration, standaloneText, startsBlock } from "./standalone.ts";

export interface SearchRules extends FitRules {
	/** The source still grows, so nothing is cut while all of it fits. */
	more: boolean;
	/** A boundary that leaves at least this many characters is good; default: half of what fits. */
	prefer?: number;
}

/** How many characters behind a cut the search for the end of a link or code span covers. */
const SPAN_MAX = 500;
/** How many graphemes to try before accepting a boundary behind which the text needs an escape. */
const GRAPHEME_TRIES = 64;

/** Returns undefined if no prefix fits with this much decoration. `most` is the end of about the longest prefix that fits. */
export function findEnd(outline: Outline, rules: SearchRules, decoration: Decoration) {
	const most = longestPrefix(outline, rules, decoration);
	const to = new Search(outline, rules, decoration).find(most);
	return to === undefined ? undefined : { to, most };
}

/** Kinds of line ends, the best first. A worse one is used only if every better one would leave too short a message. */
const RANKS = ["paragraph", "item", "line", "inner"] as const;
/** Line ends that tear no item, table or section. */
const OUTER = ["paragraph", "item", "line"] as const;
type BoundaryRank = (typeof RANKS)[number];

class Search {
	readonly #outline: Outline;
	readonly #rules: SearchRules;
	readonly #decoration: Decoration;
	readonly #from: number;
	readonly #source: string;

	constructor(outline: Outline, rules: SearchRules, decoration: Decoration) {
		this.#outline = outline;
		this.#rules = rules;
		this.#decoration = decoration;
		this.#from = outline.from;
		this.#source = outline.source;
	}

	find(longest: number): number | undefined {
		const barrier = this.#barrier(longest);
		if (barrier !== undefined && this.#fits(barrier)) return barrier;
		if (longest === this.#source.length) return longest;
		const first = this.#outline.lineAt(this.#from);
		// The opener alone is longer than a message: its words are sent as text, and the code starts in the next message.
		const opener = this.#decoration === "none" && first?.kind === "open";
		let most = opener ? Math.min(longest, first.end) : longest;
		// A longer text may render shorter, so a boundary below the longest prefix need not fit: look further below.
		while (most > this.#from) {
			for (const to of this.#candidates(most)) if (this.#fits(to)) return to;
			most = this.#from + Math.floor((most - this.#from) * 0.8);
		}
		const least = graphemeAfter(this.#source, this.#from);
		return least < this.#source.length && this.#allowed(least, false) && this.#fits(least) ? least : undefined;
	}

	/** Ends the message before a list or quote that follows code, rows or a heading begun earlier: as plain text these would absorb its first line. */
	#barrier(most: number): number | undefined {
		const { lines } = this.#outline;
		const first = this.#outline.lineAt(this.#from);
		if (first === undefined) return undefined;
		const inherited = first.before.containers.length;
		let above = first;
		let headless = this.#isHeadless(first);
		for (const line of lines.slice(this.#outline.indexAt(this.#from) + 1)) {
			if (line.start > most) return undefined;
			const code = above.after.leaf === "indented" && line.matched < Math.min(inherited, above.after.containers.length);
			if (line.after.containers.length > line.matched && (headless || code)) return line.start;
			headless &&= isRow(line);
			if (line.kind !== "blank") above = line;
		}
		return undefined;
	}

	#isHeadless({ kind, before, after }: OutlineLine): boolean {
		const { leaf, table, inLine } = before;
		if (leaf === "table") return kind === "row" && (inLine || table === undefined || this.#decoration !== "full");
		return kind === "underline" || (inLine && after.leaf === "none" && kind === "text");
	}

	#fits(to: number): boolean {
		return this.#rules.fits(standaloneText(this.#outline, to, this.#decoration));
	}

	/** Positions to cut at, the best first. */
	*#candidates(most: number): Generator<number> {
		const length = most - this.#from;
		const floor = this.#from + Math.min(this.#rules.prefer ?? Math.ceil(length / 2), length);
		const before = this.#beforeBlock(most);
		if (before !== undefined) yield before;
		const ends = this.#lineEnds(most);
		const low = this.#rules.prefer === undefined ? this.#from + length / 3 : floor;
		for (const least of [floor, low]) {
			for (const rank of OUTER) for (const to of ends[rank]) if (to >= least) yield to;
		}
		for (const to of ends.inner) if (to >= floor) yield to;
		yield* this.#inline(floor, most, "whole");
		const least = Math.ceil(this.#from + length / 8);
		const early = RANKS.flatMap((rank) => ends[rank]).filter((to) => to < floor && to > least);
		yield* early.sort((one, other) => other - one);
		yield* this.#inline(least, floor, "whole");
		yield* this.#inline(least, most, "torn");
		yield* this.#graphemes(most);
	}

	/** Position before a table or fenced block, and its heading, that this message would tear but the next one can hold whole. */
	#beforeBlock(most: number): number | undefined {
		const { lines } = this.#outline;
		const torn = this.#outline.lineAt(most);
		if (torn === undefined) return undefined;
		this.#outline.reach(torn.end);
		const table = isRow(torn);
		if (!table && fenceOf(torn.before) === undefined) return undefined;
		let index = this.#outline.indexAt(most);
		const inside = (line: OutlineLine | undefined) =>
			line !== undefined && (table ? isRow(line) : line.kind !== "open");
		while (index > 0 && inside(table ? lines[index - 1] : lines[index])) index -= 1;
		const begins = lines[index];
		if (begins === undefined || begins.before.inLine || (!table && begins.kind !== "open")) return undefined;
		if (!this.#fitsAlone(index, most - this.#from, table)) return undefined;
		const start = this.#withHeading(index);
		const enough = table ? 1 : (most - this.#from) / 4;
		const isSeen = start - this.#from >= enough && standaloneText(this.#outline, start, this.#decoration) !== "";
		return isSeen ? start : undefined;
	}

	#fitsAlone(index: number, charsMax: number, table: boolean): boolean {
		const { lines } = this.#outline;
		const start = lines[index]?.start ?? 0;
		for (let at = index; ; at += 1) {
			const line = lines[at];
			if (line === undefined || line.end - start > charsMax * 1.5) return false;
			this.#outline.reach(line.end);
			const next = lines[at + 1];
			const isLast = line.kind === "close" || next === undefined || (table && !isRow(next));
			if (isLast) return this.#rules.fits(this.#source.slice(start, line.end));
		}
	}

	#withHeading(index: number): number {
		const { lines } = this.#outline;
		let above = index - 1;
		while (above > 0 && lines[above]?.kind === "blank") above -= 1;
		let line = lines[above];
		if (line?.kind === "underline") line = lines[above - 1];
		else if (line?.kind !== "heading") line = lines[index];
		return line === undefined ? this.#from : line.start;
	}

	#lineEnds(most: number): Record<BoundaryRank, number[]> {
		const ends: Record<BoundaryRank, number[]> = { paragraph: [], item: [], line: [], inner: [] };
		const { lines } = this.#outline;
		this.#outline.reach(this.#outline.lineAt(most)?.end ?? most);
		for (let index = this.#outline.indexAt(most); index > 0; index -= 1) {
			const next = lines[index];
			if (next === undefined || next.start > most) continue;
			const rank = rankBefore(lines, index, this.#decoration);
			if (rank !== undefined) ends[rank].push(next.start);
		}
		return ends;
	}

	/** Positions between sentences, then between words, last first; `spans` selects those that keep links and code spans whole, or those that tear them. */
	*#inline(from: number, to: number, spans: "whole" | "torn"): Generator<number> {
		const words: number[] = [];
		for (let index = this.#outline.indexAt(to); index >= 0; index -= 1) {
			const line = this.#outline.lines[index];
			if (line === undefined || line.start >= to) continue;
			if (line.textEnd <= from) break;
			const found = inlineBoundaries(this.#source, Math.max(line.start, from), Math.min(line.textEnd, to));
			const wanted = this.#spanFilter(line, to, spans);
			const sentences = line.kind === "code" ? [] : found.sentences;
			for (const at of sentences) if (wanted(at) && this.#allowed(at, true)) yield at;
			for (const at of found.words) if (wanted(at)) words.push(at);
		}
		for (const at of words) if (this.#allowed(at, true)) yield at;
	}

	#spanFilter(line: OutlineLine, to: number, spans: "whole" | "torn"): (at: number) => boolean {
		const end = Math.min(line.textEnd, to + SPAN_MAX);
		const found = line.kind === "code" ? [] : inlineSpans(this.#source.slice(line.start, end));
		const tears = (at: number) => found.some(([begin, past]) => begin + line.start < at && at < past + line.start);
		return (at) => tears(at) === (spans === "torn");
	}

	*#graphemes(most: number): Generator<number> {
		for (const strict of [true, false]) {
			let at = most;
			for (let tries = 0; tries < GRAPHEME_TRIES; tries += 1) {
				at = graphemeAtOrBefore(this.#source, at, this.#from);
				if (at <= this.#from) break;
				if (this.#allowed(at, strict)) yield at;
				at -= 1;
			}
		}
	}

	/** Whether both sides of a cut inside a line keep their meaning. `strict`: without an escape in front of the second. */
	#allowed(to: number, strict: boolean): boolean {
		const line = this.#outline.lineAt(to);
		if (line === undefined || to <= line.start || this.#decoration === "none") return true;
		if (line.kind === "open" || line.kind === "close") return false;
		const head = this.#source.slice(line.start, Math.min(to, line.textEnd));
		const rest = this.#source.slice(to, line.textEnd);
		const open = line.textEnd === this.#source.length && this.#rules.more;
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

/** Ranks a cut before the line; undefined if it must not be there. */
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
