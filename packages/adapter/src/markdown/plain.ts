/** Renders markdown for chats that show only plain text. All marks are in the GSM alphabet, which has no backtick: any other character would double the price of a text message. */

import type { Code, List, ListItem, Nodes, RootContent } from "mdast";
import { parseMarkdown } from "./markdown.ts";
import { tableText, writtenOut } from "./marks.ts";

export const renderPlain = (markdown: string): string => blocks(parseMarkdown(markdown).children);

const blocks = (nodes: readonly RootContent[]): string => nodes.map(block).join("\n\n");

function block(node: RootContent): string {
	switch (node.type) {
		case "code":
			return code(node);
		case "blockquote":
			return blocks(node.children).replace(/^(?=.)/gm, "> ");
		case "list":
			return list(node);
		case "table":
			return tableText(node.children.map(({ children }) => children.map((cell) => phrases(cell.children))));
		case "thematicBreak":
			return "---";
		default:
			return phrase(node);
	}
}

/** A block without code shows its fence, because an empty message is refused. */
function code({ value, lang, meta }: Code): string {
	if (value.trim() === "") return `~~~${[lang, meta].filter(Boolean).join(" ")}\n~~~`;
	return meta ? `${meta}\n${value}` : value;
}

function list({ children, ordered, start, spread }: List): string {
	const mark = (index: number) => (ordered ? `${(start ?? 1) + index}. ` : "- ");
	return children.map((item, index) => listItem(item, mark(index))).join(spread ? "\n\n" : "\n");
}

function listItem({ children, checked, spread }: ListItem, mark: string): string {
	const box = typeof checked === "boolean" ? (checked ? "[x] " : "[ ] ") : "";
	const text = children.map(block).join(spread ? "\n\n" : "\n");
	return mark + box + text.replace(/\n(?=.)/g, `\n${" ".repeat(mark.length)}`);
}

const phrases = (nodes: readonly Nodes[]): string => nodes.map(phrase).join("");

function phrase(node: Nodes): string {
	switch (node.type) {
		case "break":
			return "\n";
		case "link":
			return writtenOut(node.url, phrases(node.children));
		case "image":
			return writtenOut(node.url, node.alt ?? "");
		default:
			if ("value" in node) return node.value;
			return "children" in node ? phrases(node.children) : "";
	}
}
