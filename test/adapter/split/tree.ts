/** The lines of a markdown source as the parser's tree has them: what the line reader has to agree with. */

import type { Nodes } from "mdast";
import { parseMarkdown } from "../../../packages/adapter/src/markdown/markdown.ts";

export interface TreeLine {
	kind: "blank" | "text" | "heading" | "rule" | "row" | "code" | "indented";
	/** Quotes and list items around it. */
	depth: number;
}

export function treeLines(source: string): TreeLine[] {
	const lines = source.split(/\r\n|\r|\n/);
	const found = lines.map((): TreeLine => ({ kind: "blank", depth: 0 }));
	const visit = (node: Nodes, depth: number): void => {
		const isContainer = node.type === "blockquote" || node.type === "listItem";
		const kind = kindOf(node, source);
		for (const line of linesOf(node, lines)) {
			if (isContainer) line.found.depth = depth + 1;
			// The line above an underline is text until the underline comes.
			if (kind !== undefined) line.found.kind = kind === "heading" && !line.isLast ? "text" : kind;
		}
		if (kind !== undefined || !("children" in node)) return;
		for (const child of node.children) visit(child, isContainer ? depth + 1 : depth);
	};
	const linesOf = (node: Nodes, texts: readonly string[]) => {
		const { start, end } = node.position ?? { start: { line: 1 }, end: { line: 0, column: 0 } };
		// A fence that its list item ended before it was closed ends on the line behind it.
		const isBehind = node.type === "code" && end.column <= (texts[end.line - 1] ?? "").length;
		const last = isBehind ? end.line - 1 : end.line;
		return found.slice(start.line - 1, last).map((each, n) => ({ found: each, isLast: start.line + n === last }));
	};
	visit(parseMarkdown(source), 0);
	return found;
}

/** Undefined: the lines belong to the node's children. */
function kindOf(node: Nodes, source: string): TreeLine["kind"] | undefined {
	switch (node.type) {
		case "paragraph":
			return "text";
		case "heading":
			return "heading";
		case "thematicBreak":
			return "rule";
		case "table":
			return "row";
		case "code":
			// Indented code has no mark at its first character.
			return /[`~]/.test(source[node.position?.start.offset ?? 0] ?? "") ? "code" : "indented";
		default:
			return undefined;
	}
}
