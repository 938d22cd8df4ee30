/** Markdown that grows: finished top-level blocks are parsed once and kept; only the open tail is parsed again. */

import type { Code, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** One top-level block and where it stands in the text (UTF-16 positions). */
export interface Block {
	readonly start: number;
	readonly end: number;
	readonly node: RootContent;
}

export interface Doc {
	readonly text: string;
	readonly blocks: readonly Block[];
	/** How many of `blocks` can no longer change. */
	readonly settled: number;
	/** Where the tail that is parsed again begins. */
	readonly tail: number;
	/** A link or footnote definition may change blocks before it: from then on the whole text is parsed each time. */
	readonly whole: boolean;
	/** The tail is nothing but an open code fence. */
	readonly fence?: OpenFence;
}

interface OpenFence {
	/** The first three characters of what would close it. */
	readonly mark: string;
	readonly bodyStart: number;
	readonly code: Code;
}

export const EMPTY_DOC: Doc = { text: "", blocks: [], settled: 0, tail: 0, whole: false };

/** Containers nested deeper than this are hostile, not prose, and cost the parser quadratic time. */
export const NESTING_MAX = 60;

const BACKTICK_LENGTHS_MAX = 40;
const FENCE = /^(`{3,}|~{3,})[^`\r\n]*\n/;
const FENCE_LINE_CHARS_MAX = 1000;
/** What the parser does more with than keep. */
const UNUSUAL = /[\r\0]/;

const EXTENSIONS = [gfm()];
const MDAST_EXTENSIONS = [gfmFromMarkdown()];

const DEFINITION = /^[ \t]*(?:(?:[>*+-]|\d{1,9}[.)])[ \t]*)*\[(?:\\[\s\S]|[^[\]\\]){1,999}\]:/m;
const DEEP_LINE = new RegExp(`^[ \\t]*(?:(?:[>*+-]|\\d{1,9}[.)])[ \\t]*){${NESTING_MAX},}`, "m");
const DEEP_INLINE = new RegExp(`(?:[[*_~!]\\s*){${NESTING_MAX * 4},}`);

/** Text that exists to make a parser slow is shown as it is. */
function hostile(text: string): boolean {
	if (DEEP_LINE.test(text) || DEEP_INLINE.test(text)) return true;
	if (text.length < BACKTICK_LENGTHS_MAX) return false;
	const lengths = new Set<number>();
	for (const [run] of text.matchAll(/`+/g)) lengths.add(run.length);
	return lengths.size > BACKTICK_LENGTHS_MAX;
}

function parse(text: string, at: number): Block[] {
	if (hostile(text)) return [plain(text, at)];
	// The parser would drop a leading byte order mark and shift every position after it.
	const source = text.startsWith("\uFEFF") ? `\u2060${text.slice(1)}` : text;
	const root = fromMarkdown(source, { extensions: EXTENSIONS, mdastExtensions: MDAST_EXTENSIONS });
	return root.children.map((node) => ({
		start: at + (node.position?.start.offset ?? 0),
		end: at + (node.position?.end.offset ?? text.length),
		node,
	}));
}

const plain = (value: string, at: number): Block => ({
	start: at,
	end: at + value.length,
	node: { type: "paragraph", children: [{ type: "text", value }] },
});

/** The whole text, parsed at once. */
export const parseWhole = (text: string): readonly Block[] => parse(text, 0);

/** The document after its text became `text`. Cheap when `text` continues what the document already has. */
export function grow(doc: Doc, text: string): Doc {
	if (text === doc.text) return doc;
	if (!text.startsWith(doc.text)) return grow(EMPTY_DOC, text);
	const fast = growOpenFence(doc, text);
	if (fast) return fast;
	const tailText = text.slice(doc.tail);
	if (doc.whole || DEFINITION.test(tailText)) {
		return { text, blocks: parseWhole(text), settled: 0, tail: 0, whole: true };
	}
	const blocks = [...doc.blocks.slice(0, doc.settled), ...parse(tailText, doc.tail)];
	const { settled, tail } = settle(doc, blocks, text);
	const fence = settled === blocks.length - 1 ? openFenceOf(text, tail, blocks[settled]) : undefined;
	return { text, blocks, settled, tail, whole: false, ...(fence && { fence }) };
}

/**
 * A block is settled once a later block has begun with two complete lines. An unfinished line can still turn out to
 * continue the block before it ("para⏎#" becomes a heading or more of the paragraph), and a table is told by two lines.
 */
function settle(doc: Doc, blocks: readonly Block[], text: string): Pick<Doc, "settled" | "tail"> {
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
function standsAlone(before: Block, text: string, tail: number, start: number): boolean {
	// A lone CR also ends a line.
	if (text[tail] === "\uFEFF" || /\r(?!\n)/.test(text.slice(before.end, start))) return false;
	// A fence begins a code block wherever it stands.
	if (FENCE.test(text.slice(tail, tail + FENCE_LINE_CHARS_MAX))) return true;
	return CLOSED_BY_ITSELF.has(before.node.type) || /\n[ \t\r]*\n/.test(text.slice(before.end, tail));
}

/** The code fence that is open at the end, when it stands alone in the tail and nothing in it could be its end. */
function openFenceOf(text: string, tail: number, last: Block | undefined): OpenFence | undefined {
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
