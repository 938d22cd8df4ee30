/** A message's text as its platform would show it; its content only ever becomes text inside known elements. */

import type { LabMessageJson, RangeJson } from "@nexus-stream/protocol/api";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { EMPTY_DOC, grow } from "../ui/markdown.ts";
import { definitionsOf, renderBlock } from "../ui/markdown-view.tsx";

export function PlatformText({ message }: { message: LabMessageJson }): VNode {
	const { text, style, ranges } = message;
	const shown = useMemo(() => render(text, style, ranges), [text, style, ranges]);
	return (
		<div class={style === "markdown" ? "prose" : "as-written"} dir={style === "markdown" ? undefined : "auto"}>
			{shown}
		</div>
	);
}

function render(text: string, style: LabMessageJson["style"], ranges: LabMessageJson["ranges"]): ComponentChildren {
	switch (style) {
		case "plain":
			return text;
		case "marks":
			return runsOfMarks(text).map(renderRun);
		case "ranges":
			return runsOfRanges(text, ranges ?? []).map(renderRun);
		case "markdown": {
			const nodes = grow(EMPTY_DOC, text).blocks.map(({ node }) => node);
			const definitions = definitionsOf(nodes);
			return nodes.map((node) => renderBlock(node, definitions));
		}
		default:
			return style satisfies never;
	}
}

const renderRun = ({ text, marks }: MarkedText): ComponentChildren => marks.reduceRight<ComponentChildren>(wrap, text);

function wrap(inner: ComponentChildren, mark: Mark): ComponentChildren {
	switch (mark) {
		case "bold":
			return <strong>{inner}</strong>;
		case "italic":
			return <em>{inner}</em>;
		case "strike":
			return <del>{inner}</del>;
		case "code":
			return <code>{inner}</code>;
		case "pre":
			return <code class="block">{inner}</code>;
		default:
			return <span class={`is-${mark}`}>{inner}</span>;
	}
}

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
