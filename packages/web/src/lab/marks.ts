/** Formatted text of a chat platform as runs of plain text with their marks. Pure; whatever comes in, every character comes out as text. */

import type { RangeJson } from "@nexus-stream/protocol";

export type Mark = "bold" | "italic" | "strike" | "underline" | "code" | "pre" | "quote" | "link" | "spoiler";

export interface MarkedText {
	readonly text: string;
	readonly marks: readonly Mark[];
}

interface Span {
	mark: Mark;
	from: number;
	to: number;
}

const OF_RANGE: Readonly<Record<string, Mark>> = {
	bold: "bold",
	italic: "italic",
	underline: "underline",
	strikethrough: "strike",
	code: "code",
	pre: "pre",
	blockquote: "quote",
	text_link: "link",
	spoiler: "spoiler",
};

/** A text whose marks are told beside it. */
export function runsOfRanges(text: string, ranges: readonly RangeJson[]): MarkedText[] {
	const spans = ranges.flatMap(({ type, offset, length }): Span[] => {
		const mark = Object.hasOwn(OF_RANGE, type) ? OF_RANGE[type] : undefined;
		const from = Math.max(0, offset);
		const to = Math.min(text.length, offset + length);
		return mark && from < to ? [{ mark, from, to }] : [];
	});
	return runs(text, spans);
}

const FENCE = /```\n?([\s\S]*?)\n?```/g;
/** A mark stands at the edge of words, on both sides. */
const INLINE = /(?<![\p{L}\p{N}])(?:`([^`\n]+)`|\*([^*\n]+)\*|_([^_\n]+)_|~([^~\n]+)~)(?![\p{L}\p{N}])/gu;
const INLINE_MARKS: readonly Mark[] = ["code", "bold", "italic", "strike"];

/** A text with `*bold*`, `_italic_`, `~struck~`, `` `code` `` and fences, as WhatsApp and Slack have it. */
export function runsOfMarks(text: string): MarkedText[] {
	const found: MarkedText[] = [];
	let at = 0;
	for (const fence of text.matchAll(FENCE)) {
		found.push(...inline(text.slice(at, fence.index), []));
		if (fence[1]) found.push({ text: fence[1], marks: ["pre"] });
		at = fence.index + fence[0].length;
	}
	return [...found, ...inline(text.slice(at), [])];
}

function inline(text: string, around: readonly Mark[]): MarkedText[] {
	const found: MarkedText[] = [];
	let at = 0;
	for (const match of text.matchAll(INLINE)) {
		if (match.index > at) found.push({ text: text.slice(at, match.index), marks: around });
		const which = match.slice(1).findIndex((inner) => inner !== undefined);
		const mark = INLINE_MARKS[which]!;
		const inner = match[which + 1]!;
		if (mark === "code") found.push({ text: inner, marks: [...around, mark] });
		else found.push(...inline(inner, [...around, mark]));
		at = match.index + match[0].length;
	}
	if (at < text.length) found.push({ text: text.slice(at), marks: around });
	return found;
}

/** Spans may overlap: the text is cut wherever one begins or ends. */
function runs(text: string, spans: readonly Span[]): MarkedText[] {
	const cuts = [...new Set([0, text.length, ...spans.flatMap(({ from, to }) => [from, to])])].toSorted((a, b) => a - b);
	return cuts.slice(0, -1).map((from, index) => ({
		text: text.slice(from, cuts[index + 1]),
		marks: spans.filter((span) => span.from <= from && span.to > from).map(({ mark }) => mark),
	}));
}
