/** Markdown that grows: finished top-level blocks are parsed once and kept; only the open tail is parsed again. */

import { isHostile } from "@nexus-stream/protocol/markdown";
import type { Code, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** One top-level block and where it stands in the text (UTF-16 positions). */
export interface MarkdownBlock {
	readonly start: number;
	readonly end: number;
	readonly node: RootContent;
	/** Too costly to parse: shown as the text it is. */
	readonly plain?: true;
}

export interface Doc {
	readonly text: string;
	readonly blocks: readonly MarkdownBlock[];
	/** How many of `blocks` can no longer change. */
	readonly settled: number;
	/** Where the tail that is parsed again begins. */
	readonly tail: number;
	/** A link or footnote definition may change blocks before it: the whole text is parsed each time, until it is too long for that. */
	readonly whole: boolean;
	/** There are definitions that links use. */
	readonly defines: boolean;
	/** The tail is nothing but an open code fence. */
	readonly fence?: OpenFence;
}

interface OpenFence {
	/** The first three characters of what would close it. */
	readonly mark: string;
	readonly bodyStart: number;
	readonly code: Code;
}

export const EMPTY_DOC: Doc = { text: "", blocks: [], settled: 0, tail: 0, whole: false, defines: false };

/** An open block that is longer is shown as plain text: parsing all of it again for every new word would take ever longer. */
const TAIL_CHARS_MAX = 60_000;
const LISTING_CHARS_MAX = 300_000;
/** A text that comes in one piece is parsed in steps of this size, and seen from its beginning on. */
const STEP_CHARS = 16_000;
/** In a longer text a definition no longer changes what stands before it. */
const WHOLE_CHARS_MAX = 30_000;

const FENCE = /^(`{3,}|~{3,})[^`\r\n]*\n/;
const FENCE_LINE_CHARS_MAX = 1000;
/** Characters that the parser does not keep as they are. */
const UNUSUAL = /[\r\0]/;

const EXTENSIONS = [gfm()];
const MDAST_EXTENSIONS = [gfmFromMarkdown()];

const DEFINITION = /^[ \t]*(?:(?:[>*+-]|\d{1,9}[.)])[ \t]*)*\[(?:\\[\s\S]|[^[\]\\]){1,999}\]:/m;
function parse(text: string, at: number): MarkdownBlock[] {
	if (isHostile(text)) return [plain(text, at)];
	// The parser would drop a leading byte order mark and shift every position after it.
	const source = text.startsWith("\uFEFF") ? `\u2060${text.slice(1)}` : text;
	const root = fromMarkdown(source, { extensions: EXTENSIONS, mdastExtensions: MDAST_EXTENSIONS });
	return root.children.map((node) => ({
		start: at + (node.position?.start.offset ?? 0),
		end: at + (node.position?.end.offset ?? text.length),
		node,
	}));
}

const plain = (value: string, at: number): MarkdownBlock => ({
	start: at,
	end: at + value.length,
	// As HTML is: the text it is, with its line breaks.
	node: { type: "html", value },
	plain: true,
});

/** How much of a text is parsed next: more at once would be felt. One that is parsed whole each time is only made slower by steps. */
export function nextStep(doc: Doc, text: string): string {
	const from = text.startsWith(doc.text) ? doc.text.length : 0;
	const whole = doc.whole && text.length <= WHOLE_CHARS_MAX;
	return whole || text.length - from <= STEP_CHARS ? text : text.slice(0, from + STEP_CHARS);
}

/** The whole text, parsed at once. */
export const parseWhole = (text: string): readonly MarkdownBlock[] => parse(text, 0);

/** The document after its text became `text`. Cheap when `text` continues what the document already has. */
export function grow(doc: Doc, text: string): Doc {
	if (text === doc.text) return doc;
	if (!text.startsWith(doc.text)) return grow(EMPTY_DOC, text);
	const fast = growOpenFence(doc, text);
	if (fast) return fast;
	const tailText = text.slice(doc.tail);
	const defines = doc.defines || DEFINITION.test(tailText);
	if (defines && text.length <= WHOLE_CHARS_MAX) {
		return { text, blocks: parseWhole(text), settled: 0, tail: 0, whole: true, defines };
	}
	const blocks = [...doc.blocks.slice(0, doc.settled), ...parse(tailText, doc.tail)];
	const { settled, tail } = settle(doc, blocks, text);
	// A listing is cheap to parse, and settles with the lines that follow its closing fence.
	const charsMax = FENCE.test(text.slice(tail, tail + FENCE_LINE_CHARS_MAX)) ? LISTING_CHARS_MAX : TAIL_CHARS_MAX;
	if (text.length - tail > charsMax) return cutOff(blocks.slice(0, settled), text, tail, defines);
	const fence = settled === blocks.length - 1 ? openFenceOf(text, tail, blocks[settled]) : undefined;
	return { text, blocks, settled, tail, whole: false, defines, fence };
}

/** Ends the open block: its text so far stays plain, and the following text starts a new document part. */
function cutOff(before: readonly MarkdownBlock[], text: string, tail: number, defines: boolean): Doc {
	const blocks = [...before, plain(text.slice(tail), tail)];
	return { text, blocks, settled: blocks.length, tail: text.length, whole: false, defines };
}

/**
 * A block is settled once a later block has begun with two complete lines. An unfinished line can still turn out to
 * continue the block before it ("para⏎#" becomes a heading or more of the paragraph), and a table is recognized by two lines.
 */
function settle(doc: Doc, blocks: readonly MarkdownBlock[], text: string): Pick<Doc, "settled" | "tail"> {
	const lastLineFeed = text.lastIndexOf("\n");
	const complete = lastLineFeed <= 0 ? -1 : text.lastIndexOf("\n", lastLineFeed - 1);
	for (let index = blocks.length - 1; index > doc.settled; index -= 1) {
		const { start } = blocks[index]!;
		const tail = text.lastIndexOf("\n", start - 1) + 1;
		if (start > complete || tail <= doc.tail) continue;
		if (standsAlone(blocks[index - 1]!, text, tail, start)) return { settled: index, tail };
	}
	return { settled: doc.settled, tail: doc.tail };
}

/** After these nothing reads differently than at the beginning of a text. Right after a paragraph some blocks may not begin. */
const CLOSED_BY_ITSELF: ReadonlySet<string> = new Set(["heading", "thematicBreak"]);

/** Whether the block that begins at `start` reads the same without what comes before it. */
function standsAlone(before: MarkdownBlock, text: string, tail: number, start: number): boolean {
	// A lone CR also ends a line.
	if (text[tail] === "\uFEFF" || /\r(?!\n)/.test(text.slice(before.end, start))) return false;
	// A fence begins a code block wherever it stands.
	if (FENCE.test(text.slice(tail, tail + FENCE_LINE_CHARS_MAX))) return true;
	return CLOSED_BY_ITSELF.has(before.node.type) || /\n[ \t\r]*\n/.test(text.slice(before.end, tail));
}

/** The code fence that is open at the end, when it stands alone in the tail and nothing in it could be its end. */
function openFenceOf(text: string, tail: number, last: MarkdownBlock | undefined): OpenFence | undefined {
	if (last?.node.type !== "code" || last.start !== tail) return undefined;
	const open = FENCE.exec(text.slice(tail, tail + FENCE_LINE_CHARS_MAX));
	const mark = open?.[1]?.slice(0, 3);
	if (!open || !mark) return undefined;
	const bodyStart = tail + open[0].length;
	const body = text.slice(bodyStart);
	return body.includes(mark) || UNUSUAL.test(body) ? undefined : { mark, bodyStart, code: last.node };
}

/** An open code fence only gains lines until its closing fence: a long listing needs no parser. */
function growOpenFence(doc: Doc, text: string): Doc | undefined {
	const { fence } = doc;
	if (!fence) return undefined;
	// From the last line that was there: it may only now have become the closing fence.
	const news = text.slice(Math.max(fence.bodyStart, doc.text.lastIndexOf("\n") + 1));
	if (news.includes(fence.mark) || UNUSUAL.test(news)) return undefined;
	const node: Code = { ...fence.code, value: text.slice(fence.bodyStart, text.endsWith("\n") ? -1 : undefined) };
	const blocks = doc.blocks.with(-1, { start: doc.tail, end: text.length, node });
	return { ...doc, text, blocks };
}
