/** Follows markdown's open quotes, list items and code fence line by line, without look-ahead. A property test holds it to `parseMarkdown` (ADR 55). */

import { NESTING_MAX } from "@nexus-stream/protocol/markdown";

export interface Fence {
	readonly mark: "`" | "~";
	readonly length: number;
	/** Columns between its containers' content and the opener. */
	readonly indent: number;
	/** The text behind the opener's marks, with the space before it. */
	readonly info: string;
}

/** A block quote, or a list item whose content is `indent` columns in. */
export interface Container {
	readonly kind: "quote" | "item";
	readonly indent: number;
	/** The item has nothing but its marker yet: a blank line ends it. */
	readonly fresh: boolean;
}

export interface MarkdownState {
	readonly containers: readonly Container[];
	readonly leaf: "none" | "paragraph" | "table" | "indented" | Fence;
	/** The position is inside a line: the rest continues the block that the line began. */
	readonly inLine: boolean;
	/** How many columns a table would have if its delimiter row followed; 0 where no table can begin. */
	readonly cells: number;
	/** The head of the table that is open, or that a delimiter row would open, without the marks of its containers. Long heads are not kept. */
	readonly table?: string;
	/** The beginning of the line and the state before it, as long as the rest of the line can still change its kind. */
	readonly head?: { readonly text: string; readonly before: MarkdownState };
}

export const START: MarkdownState = { containers: [], leaf: "none", inLine: false, cells: 0 };

export const fenceOf = (markdown: MarkdownState): Fence | undefined =>
	typeof markdown.leaf === "object" ? markdown.leaf : undefined;

export type LineKind =
	| "blank"
	| "text"
	| "item"
	| "heading"
	/** Turns the paragraph above it into a heading. */
	| "underline"
	| "rule"
	| "row"
	| "delimiter"
	| "open"
	| "code"
	| "close"
	| "indented";

export interface LineRead {
	kind: LineKind;
	/** The state after the line. */
	after: MarkdownState;
	/** It continues a paragraph without the marks of the paragraph's containers. */
	lazy: boolean;
	/** How many of the open containers the line belongs to. */
	matched: number;
}

/** A partly read line: everything before `at` is read and free of tabs, so an index is a column. */
interface Scan {
	line: string;
	at: number;
}

/** Counts the columns of white space at the scan's position, up to `want`, and expands the tabs among them. */
function indentAt(scan: Scan, want: number): number {
	let columns = 0;
	while (columns < want) {
		const next = scan.line[scan.at + columns];
		if (next === "\t") {
			const at = scan.at + columns;
			scan.line = `${scan.line.slice(0, at)}${" ".repeat(4 - (at % 4))}${scan.line.slice(at + 1)}`;
		} else if (next !== " ") break;
		columns += 1;
	}
	return columns;
}

function isBlankFrom(line: string, from: number): boolean {
	for (let at = from; at < line.length; at += 1) {
		const code = line.charCodeAt(at);
		if (code !== 32 && code !== 9) return false;
	}
	return true;
}

/** Reads past the marks of the open containers and returns how many of them the line continues. */
function matchContainers(containers: readonly Container[], scan: Scan): number {
	let matched = 0;
	for (const container of containers) {
		if (container.kind === "quote") {
			const indent = indentAt(scan, 4);
			if (indent > 3 || scan.line[scan.at + indent] !== ">") break;
			scan.at += indent + 1;
			scan.at += indentAt(scan, 1);
		} else if (isBlankFrom(scan.line, scan.at)) {
			if (container.fresh) break;
		} else {
			if (indentAt(scan, container.indent) < container.indent) break;
			scan.at += container.indent;
		}
		matched += 1;
	}
	return matched;
}

/** Indentation, quote marks and list markers at the start of a line. */
export const MARKS = /^(?:[ \t>]|(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$))*/;

/** Removes the marks of the containers from a line, and counts those it had. `expand` turns tabs before the text into spaces, so that they keep their width. */
export function withoutContainers(
	containers: readonly Container[],
	line: string,
	tabs: "keep" | "expand",
): { rest: string; matched: number } {
	const scan = { line, at: 0 };
	const matched = matchContainers(containers, scan);
	const at = scan.at;
	while (tabs === "expand") {
		const tab = MARKS.exec(scan.line)?.[0].indexOf("\t") ?? -1;
		if (tab < 0) break;
		scan.at = tab;
		indentAt(scan, 1);
	}
	return { rest: scan.line.slice(at), matched };
}

const OPENER = /^(?:(`{3,})([^`]*)|(~{3,})(.*))$/s;
const HEADING = /^#{1,6}(?:[ \t]|$)/;
const RULE = /^(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const UNDERLINE = /^(?:=+|-+)[ \t]*$/;
const MARKER = /^(?:[-+*]|(\d{1,9})[.)])(?=[ \t]|$)/;
const DELIMITER = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

function isCloser(fence: Fence, line: string, from: number): boolean {
	let at = from;
	while (line[at] === fence.mark) at += 1;
	return at - from >= fence.length && isBlankFrom(line, at);
}

function cellsOf(row: string): number {
	if (!row.includes("|")) return 1;
	const unescaped = row.trim().replace(/\\[\s\S]/g, "");
	return unescaped.replace(/^\||\|$/g, "").split("|").length;
}

/** Opens the quotes and items that begin on the line. */
function openContainers(scan: Scan, into: Container[], interrupts: boolean): boolean {
	let item = false;
	for (;;) {
		// Renderers treat deeper nesting as plain text.
		if (into.length >= NESTING_MAX) return item;
		const indent = indentAt(scan, 4);
		const first = scan.line[scan.at + indent];
		if (indent > 3 || first === undefined) return item;
		if (first === ">") {
			scan.at += indent + 1;
			scan.at += indentAt(scan, 1);
			into.push({ kind: "quote", indent: 0, fresh: false });
		} else {
			const rest = scan.line.slice(scan.at + indent, scan.at + indent + 12);
			const marker = MARKER.exec(rest);
			if (marker === null || RULE.test(scan.line.slice(scan.at + indent))) return item;
			const end = scan.at + indent + marker[0].length;
			const fresh = isBlankFrom(scan.line, end);
			if (interrupts && (fresh || (marker[1] !== undefined && Number(marker[1]) !== 1))) return item;
			const begin = scan.at;
			scan.at = end;
			const gap = fresh ? 1 : indentAt(scan, 5);
			const width = gap > 4 ? 1 : gap;
			scan.at = fresh ? scan.line.length : end + width;
			into.push({ kind: "item", indent: end + width - begin, fresh });
			item = true;
		}
	}
}

const settled = (containers: readonly Container[]): readonly Container[] =>
	containers.some((each) => each.fresh) ? containers.map((each) => ({ ...each, fresh: false })) : containers;

const LETTER = /^[\p{L}(]/u;

/** Reads one line, without its line end, in the state before it. */
export function readLine(markdown: MarkdownState, line: string): LineRead {
	const { containers, leaf } = markdown;
	if (containers.length === 0 && typeof leaf === "string" && leaf !== "table" && LETTER.test(line)) {
		return { kind: "text", after: textPlace([], line), lazy: false, matched: 0 };
	}
	const scan: Scan = { line, at: 0 };
	const matched = matchContainers(containers, scan);
	if (typeof leaf === "string" || matched < containers.length) return readOutsideFence(markdown, scan, matched);
	const indent = indentAt(scan, 4);
	const closes = indent < 4 && isCloser(leaf, scan.line, scan.at + indent);
	const after: MarkdownState = { ...markdown, leaf: closes ? "none" : leaf, inLine: false };
	return { kind: closes ? "close" : "code", after, lazy: false, matched };
}

function readOutsideFence(markdown: MarkdownState, scan: Scan, matched: number): LineRead {
	const { containers, leaf } = markdown;
	const all = matched === containers.length;
	const open = containers.slice(0, matched);
	const inParagraph = leaf === "paragraph" && all;
	const at = (kind: LineKind, next: MarkdownState["leaf"], cells = 0): LineRead => ({
		kind,
		after: { containers: kind === "blank" ? open : settled(open), leaf: next, inLine: false, cells },
		lazy: false,
		matched,
	});
	if (inParagraph) {
		const indent = indentAt(scan, 4);
		const rest = scan.line.slice(scan.at + indent);
		if (indent < 4 && isDelimiter(rest, markdown.cells)) {
			const read = at("delimiter", "table");
			const head = markdown.table === undefined ? {} : keptHead(`${markdown.table}\n${rest.trimEnd()}`);
			return { ...read, after: { ...read.after, ...head } };
		}
		if (indent < 4 && UNDERLINE.test(rest)) return at("underline", "none");
	}
	const opened = openContainers(scan, open, inParagraph || (leaf === "indented" && all));
	const begun = open.length > matched;
	if (isBlankFrom(scan.line, scan.at)) {
		const kind = begun ? (opened ? "item" : "text") : "blank";
		const next = leaf === "indented" && all && !begun ? leaf : "none";
		// An item that holds another item is not empty.
		const held = begun ? [...settled(open.slice(0, matched)), ...open.slice(matched)] : open;
		return { kind, after: { containers: held, leaf: next, inLine: false, cells: 0 }, lazy: false, matched };
	}
	const indent = indentAt(scan, 4);
	const rest = scan.line.slice(scan.at + indent);
	if (indent < 4) {
		const fence = fenceAt(rest, indent);
		if (fence !== undefined) return at("open", fence);
		if (HEADING.test(rest)) return at("heading", "none");
		if (RULE.test(rest)) return at("rule", "none");
	}
	if (leaf === "paragraph" && !begun) {
		const after = textPlace(settled(containers), rest);
		return { kind: "text", after, lazy: !all, matched };
	}
	if (leaf === "table" && all && !begun && indent < 4) {
		const read = at("row", "table");
		return { ...read, after: { ...read.after, ...keptHead(markdown.table) } };
	}
	if (indent > 3) return at(opened ? "item" : "indented", "indented");
	const after = textPlace(settled(open), rest);
	// A line that ends a table by leaving its list item cannot be the head of another one.
	const noHead = leaf === "table" && !all && !begun;
	return { kind: opened ? "item" : "text", after: noHead ? { ...after, cells: 0 } : after, lazy: false, matched };
}

const textPlace = (containers: readonly Container[], text: string): MarkdownState => {
	const head = text.includes("|") ? keptHead(text.trimEnd()) : {};
	return { containers, leaf: "paragraph", inLine: false, cells: cellsOf(text), ...head };
};

/** Repeating a longer head would leave little room for rows. */
const TABLE_HEAD_CHARS_MAX = 500;

export const keptHead = (table: string | undefined): Pick<MarkdownState, "table"> =>
	table === undefined || table.length > TABLE_HEAD_CHARS_MAX ? {} : { table };

function isDelimiter(text: string, cells: number): boolean {
	if (!text.includes("-") || !(text.includes("|") || text.includes(":"))) return false;
	return DELIMITER.test(text) && cellsOf(text) === cells;
}

function fenceAt(text: string, indent: number): Fence | undefined {
	if (!text.startsWith("```") && !text.startsWith("~~~")) return undefined;
	const found = OPENER.exec(text);
	if (found === null) return undefined;
	const { length } = found[1] ?? found[3] ?? "";
	return { mark: found[1] ? "`" : "~", length, indent, info: (found[2] ?? found[4] ?? "").trimEnd() };
}
