/** Renders markdown for chats that know only *bold*, _italic_, ~struck~, `code` and > quotes. Other marks are left out; the text never is. */

import type { Code, List, ListItem, Nodes, PhrasingContent, RootContent, Table } from "mdast";
import { lengthOf } from "./length.ts";
import { parseMarkdown } from "./markdown.ts";

export interface MarkupDialect {
	/** Escapes the characters that the chat would read as markup. */
	escape(text: string): string;
	/** `label` is plain and not escaped. */
	link(url: string, label: string): string;
	bullet: string;
}

/** Invisible space: chats read marks only at the edge of a word, and this makes an edge inside one. */
const EDGE = "\u200b";

interface Around {
	dialect: MarkupDialect;
	/** Open marks: repeating one of them would close it. */
	open: readonly string[];
}

export const renderMarks = (markdown: string, dialect: MarkupDialect): string =>
	blocks(parseMarkdown(markdown).children, { dialect, open: [] });

const blocks = (nodes: readonly RootContent[], around: Around): string =>
	nodes.map((node) => block(node, around)).join("\n\n");

function block(node: RootContent, around: Around): string {
	switch (node.type) {
		case "paragraph":
			return inline(node.children, around);
		case "heading":
			return heading(node.children, around);
		case "code":
			return code(node, around.dialect);
		case "blockquote":
			return quoted(blocks(node.children, around));
		case "list":
			return list(node, around);
		case "table":
			return fenced(table(node), around.dialect);
		case "thematicBreak":
			return "———";
		default:
			return inline([node as PhrasingContent], around);
	}
}

/** Bold text cannot span lines. */
function heading(nodes: readonly PhrasingContent[], around: Around): string {
	const text = inline(nodes, { ...around, open: ["*"] });
	return /\S/.test(text) && !text.includes("\n") ? `*${text}*` : text;
}

/** A block without code shows its fence, because an empty message is refused. */
function code({ value, lang, meta }: Code, dialect: MarkupDialect): string {
	if (value.trim() === "") return dialect.escape(`\`\`\`${[lang, meta].filter(Boolean).join(" ")}\n\`\`\``);
	const caption = meta ? `${dialect.escape(meta)}\n` : "";
	return caption + fenced(value, dialect);
}

const fenced = (text: string, dialect: MarkupDialect): string =>
	`\`\`\`\n${dialect.escape(text.replace(/`(?=``)/g, `\`${EDGE}`))}\n\`\`\``;

/** Leaves fences out of the quote, because the chat would show quote marks inside them as code. */
function quoted(text: string): string {
	const parts = text.split(/(^```\n[\s\S]*?\n```$)/m);
	return parts.map((part) => (part.startsWith("```\n") ? part : part.replace(/^(?=.)/gm, "> "))).join("");
}

function list({ children, ordered, start, spread }: List, around: Around): string {
	const first = start ?? 1;
	const mark = (index: number) => (ordered ? `${first + index}. ` : around.dialect.bullet);
	return children.map((item, index) => listItem(item, mark(index), around)).join(spread ? "\n\n" : "\n");
}

function listItem({ children, checked, spread }: ListItem, mark: string, around: Around): string {
	const box = typeof checked === "boolean" ? (checked ? "☑ " : "☐ ") : "";
	const [head, ...rest] = children;
	const text = (node: RootContent) => indented(block(node, around));
	const begun = head === undefined ? "" : head.type === "paragraph" ? block(head, around) : `\n${text(head)}`;
	return [`${mark}${box}${begun}`, ...rest.map(text)].join(spread ? "\n\n" : "\n");
}

const indented = (text: string): string => (text.includes("```") ? text : text.replace(/^(?=.)/gm, "    "));

function table({ children }: Table): string {
	const written: MarkupDialect = { escape: (text) => text, link: writtenOut, bullet: "" };
	// Treat all marks as open, because the table is sent as code, where marks would show.
	const around = { dialect: written, open: ["*", "_", "~", "`"] };
	return tableText(children.map((row) => row.children.map((cell) => inline(cell.children, around))));
}

/** For dialects without links. */
export const writtenOut = (url: string, label: string): string =>
	label.trim() === "" || label === url || `mailto:${label}` === url ? label || url : `${label} (${url})`;

function inline(nodes: readonly PhrasingContent[], around: Around): string {
	let text = "";
	for (const [index, node] of nodes.entries()) {
		const said = phrase(node, around);
		const mark = MARKS[node.type];
		const isMarked = mark !== undefined && said.startsWith(mark) && said.length > 1;
		if (isMarked && /[\p{L}\p{N}]$/u.test(text)) text += EDGE;
		text += said;
		const next = nodes[index + 1];
		if (isMarked && next?.type === "text" && /^[\p{L}\p{N}]/u.test(next.value)) text += EDGE;
	}
	return text;
}

const MARKS: Partial<Record<Nodes["type"], string>> = { strong: "*", emphasis: "_", delete: "~", inlineCode: "`" };

function phrase(node: Nodes, around: Around): string {
	const { dialect } = around;
	switch (node.type) {
		case "strong":
		case "emphasis":
		case "delete":
			return marked(node.children, MARKS[node.type] ?? "", around);
		case "inlineCode": {
			const plain = node.value.includes("`") || node.value.includes("\n") || around.open.includes("`");
			return plain ? dialect.escape(node.value) : `\`${dialect.escape(node.value)}\``;
		}
		case "break":
			return "\n";
		case "link":
			return dialect.link(node.url, plainOf(node));
		case "image":
			return dialect.link(node.url, node.alt ?? "");
		default:
			// The parser has no other inline nodes; if one is added, its text is still shown.
			if ("value" in node) return dialect.escape(node.value);
			return "children" in node ? node.children.map((child) => phrase(child, around)).join("") : "";
	}
}

function marked(nodes: readonly PhrasingContent[], mark: string, around: Around): string {
	if (around.open.includes(mark)) return inline(nodes, around);
	const text = inline(nodes, { ...around, open: [...around.open, mark] });
	// Chats ignore marks next to white space or around several lines.
	const readable = /^\S(?:.*\S)?$/.test(text) && !text.startsWith(EDGE);
	return readable ? mark + text + mark : text;
}

/** The label as plain text; chats read no marks in it. */
function plainOf(node: Nodes): string {
	if ("value" in node) return node.value;
	if (node.type === "image") return node.alt ?? "";
	if (node.type === "break") return " ";
	return "children" in node ? node.children.map(plainOf).join("") : "";
}

/** The first row is the head. */
export function tableText(rows: readonly (readonly string[])[]): string {
	const columns = Math.max(0, ...rows.map((row) => row.length));
	const cells = rows.map((row) =>
		Array.from({ length: columns }, (_, at) => (row[at] ?? "").replace(/\s+/g, " ").trim()),
	);
	const widths = Array.from({ length: columns }, (_, at) => Math.max(1, ...cells.map((row) => widthOf(row[at] ?? ""))));
	const line = (row: readonly string[]) =>
		row
			.map((cell, at) => padded(cell, widths[at] ?? 0))
			.join(" | ")
			.trimEnd();
	const [head = [], ...body] = cells;
	const rule = widths.map((width) => "-".repeat(width)).join("-+-");
	return [line(head), rule, ...body.map(line)].join("\n");
}

const widthOf = (text: string): number => lengthOf(text, "grapheme");

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)));
