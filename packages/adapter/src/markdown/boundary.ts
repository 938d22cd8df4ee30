/** Finds positions inside a line where a text can be cut: between sentences, words or graphemes. */

let made: Intl.Segmenter | undefined;

/** Created on first use: it takes megabytes, and the daemon loads this file even if it never cuts a text. */
export const graphemes = (): Intl.Segmenter => {
	made ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
	return made;
};

/** How many characters back the search for the beginning of a run of joined characters goes. */
const RUN_MAX = 4096;

/** Below U+0300 every character is a grapheme, except a carriage return before a line feed. */
const isAlone = (code: number): boolean => code < 0x300;

/** Never true inside a surrogate pair, an emoji sequence, a flag, a letter with its marks, or between `\r` and `\n`. */
export function isGraphemeBoundary(source: string, at: number): boolean {
	if (at <= 0 || at >= source.length) return true;
	const before = source.charCodeAt(at - 1);
	const after = source.charCodeAt(at);
	if (isAlone(before) && isAlone(after)) return !(before === 13 && after === 10);
	if (after >= 0xdc00 && after <= 0xdfff && before >= 0xd800 && before <= 0xdbff) return false;
	return graphemeBefore(source, at) === at;
}

/** Beginning of the grapheme that holds the unit at `at`. */
function graphemeBefore(source: string, at: number): number {
	let start = at - 1;
	while (start > 0 && at - start < RUN_MAX) {
		if (isAlone(source.charCodeAt(start)) && isAlone(source.charCodeAt(start - 1))) break;
		start -= 1;
	}
	const run = graphemes().segment(source.slice(start, at + 2));
	return start + (run.containing(at - start)?.index ?? at - start);
}

/** The nearest boundary at or before `at`, but after `from`; `from` itself when the grapheme there is longer. */
export function graphemeAtOrBefore(source: string, at: number, from: number): number {
	if (at <= from || isGraphemeBoundary(source, at)) return at;
	return Math.max(from, graphemeBefore(source, at));
}

/** The end of the grapheme that begins at `from`. A grapheme of more than `RUN_MAX` units counts as several. */
export function graphemeAfter(source: string, from: number): number {
	if (from + 1 >= source.length || isGraphemeBoundary(source, from + 1)) return from + 1;
	const [first] = graphemes().segment(source.slice(from, from + RUN_MAX));
	return from + Math.max(1, first?.segment.length ?? 1);
}

const isSpace = (code: number): boolean => code === 32 || code === 9;

/** Marks that end a sentence if white space follows, and marks that end it in any case. */
const STOPS = ".!?…؟۔।:;";
const WIDE_STOPS = "。！？；";
const CLOSERS = "\"'”’»)]}*_`」』）】";

function endsSentence(source: string, at: number): boolean {
	let last = at - 1;
	while (last > 0 && CLOSERS.includes(source[last] ?? "a")) last -= 1;
	return STOPS.includes(source[last] ?? "a");
}

/** Positions after a sentence or a word and its white space, last first. `[from, to]` lies within one line; `to` counts only where white space ends. */
export function inlineBoundaries(source: string, from: number, to: number) {
	const sentences: number[] = [];
	const words: number[] = [];
	for (let at = to; at > from; at -= 1) {
		const isWord = isSpace(source.charCodeAt(at - 1));
		if (isWord && at < source.length && isSpace(source.charCodeAt(at))) continue;
		const isWide = WIDE_STOPS.includes(source[at - 1] ?? "a") && !CLOSERS.includes(source[at] ?? "a");
		if (!(isWord || isWide) || !isGraphemeBoundary(source, at)) continue;
		let end = at - 1;
		while (end > from && isSpace(source.charCodeAt(end - 1))) end -= 1;
		if (isWord) words.push(at);
		if (isWide || endsSentence(source, end)) sentences.push(at);
	}
	return { sentences, words };
}

/** Ranges of a line that read badly when torn: code spans, links, strong text. */
export function inlineSpans(line: string): [number, number][] {
	const spans: [number, number][] = [];
	const open = new Map<string, number>();
	for (const { 0: mark, index } of line.matchAll(/`+|\*\*|~~|\[|\]\([^)\s]{0,500}\)/g)) {
		const isTarget = mark.startsWith("](");
		const token = isTarget ? "[" : mark;
		const started = mark === "[" ? undefined : open.get(token);
		if (started === undefined && !isTarget) open.set(token, index);
		if (started === undefined) continue;
		spans.push([started, index + mark.length]);
		open.delete(token);
	}
	return spans;
}
