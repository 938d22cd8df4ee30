/** Splits formatted text of a chat platform into runs of plain text with their marks. Every character of the input is kept as text. */

import type { RangeJson } from "@nexus-stream/protocol/api";

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

/** Text with formatting ranges (Telegram entities). */
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
/** Marks count only at word boundaries. */
const INLINE = /(?<![\p{L}\p{N}])(?:`([^`\n]+)`|\*([^*\n]+)\*|_([^_\n]+)_|~([^~\n]+)~)(?![\p{L}\p{N}])/gu;
const INLINE_MARKS: readonly Mark[] = ["code", "bold", "italic", "strike"];

/** Text with `*bold*`, `_italic_`, `~struck~`, `` `code` `` and fences, as in WhatsApp and Slack. */
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

/** Cuts the text wherever a span begins or ends, because spans may overlap. */
function runs(text: string, spans: readonly Span[]): MarkedText[] {
	const cuts = [...new Set([0, text.length, ...spans.flatMap(({ from, to }) => [from, to])])].toSorted((a, b) => a - b);
	return cuts.slice(0, -1).map((from, index) => ({
		text: text.slice(from, cuts[index + 1]),
		marks: spans.filter((span) => span.from <= from && span.to > from).map(({ mark }) => mark),
	}));
}
