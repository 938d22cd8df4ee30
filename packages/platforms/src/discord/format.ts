/** Markdown as Discord reads it: the source as it is, except where Discord reads it differently. */

import { parseMarkdown } from "@nexus-stream/adapter/markdown/markdown";
import { tableText } from "@nexus-stream/adapter/markdown/table";
import type { Nodes, Parents, Table } from "mdast";

interface Change {
	from: number;
	to: number;
	text: string;
}

export function render(markdown: string): string {
	const changes: Change[] = [];
	collect(parseMarkdown(markdown), [], markdown, changes);
	changes.sort((a, b) => a.from - b.from);
	let rendered = "";
	let at = 0;
	for (const { from, to, text } of changes) {
		rendered += markdown.slice(at, from) + text;
		at = to;
	}
	return rendered + markdown.slice(at);
}

function collect(node: Nodes, above: readonly Parents[], source: string, changes: Change[]): void {
	const from = node.position?.start.offset;
	const to = node.position?.end.offset;
	if (from === undefined || to === undefined) return;
	const written = source.slice(from, to);
	const whole = changeOf(node, above, written);
	if (whole !== undefined) {
		changes.push({ from, to, text: whole });
		return;
	}
	// Two underscores would underline.
	if (node.type === "strong" && written.startsWith("__")) {
		changes.push({ from, to: from + 2, text: "**" }, { from: to - 2, to, text: "**" });
	}
	if (node.type === "heading") headingChanges(node.depth, from, to, written, changes);
	if (!("children" in node)) return;
	for (const child of node.children) collect(child, [...above, node], source, changes);
}

/** The text of the whole node; undefined = render its children. */
function changeOf(node: Nodes, above: readonly Parents[], written: string): string | undefined {
	switch (node.type) {
		case "table":
			// In a quote or a list its lines have marks of theirs; it is readable as it is.
			return above.length === 1 ? `\`\`\`\n${withoutFences(tableOf(node, written))}\n\`\`\`` : undefined;
		case "thematicBreak":
			return "———";
		case "image":
			// As a link; an address alone where it has no words.
			return written === `![](${node.url})` ? node.url : written.slice(1);
		case "break":
			return "\n";
		case "text":
			// Two bars would hide what is between them.
			return written.includes("||") ? written.replaceAll("||", "\\|\\|") : undefined;
		default:
			return undefined;
	}
}

const withoutFences = (text: string): string => text.replaceAll("```", "'''");

function tableOf({ children, position }: Table, written: string): string {
	const base = position?.start.offset ?? 0;
	const cellText = (cell: Table["children"][number]["children"][number]): string => {
		const first = cell.children[0]?.position?.start.offset;
		const last = cell.children.at(-1)?.position?.end.offset;
		return first === undefined || last === undefined
			? ""
			: written.slice(first - base, last - base).replaceAll("\\|", "|");
	};
	return tableText(children.map((row) => row.children.map(cellText)));
}

/** Discord knows three levels, written with marks before the text; deeper ones are bold. */
function headingChanges(depth: number, from: number, to: number, written: string, changes: Change[]): void {
	const opening = /^#{1,6}[ \t]*/.exec(written)?.[0];
	const underline = /[ \t]*\r?\n[^\n]*$/.exec(written);
	if (opening === undefined && underline) {
		changes.push({ from, to: from, text: `${"#".repeat(depth)} ` });
		changes.push({ from: from + underline.index, to, text: "" });
	} else if (opening !== undefined && depth > 3 && written.length > opening.length) {
		changes.push({ from, to: from + opening.length, text: "**" }, { from: to, to, text: "**" });
	}
}
