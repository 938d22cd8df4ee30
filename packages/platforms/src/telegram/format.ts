/** Markdown as Telegram's HTML: the few tags that messages may have, everything else in letters and line breaks. */

import { parseMarkdown } from "@nexus-stream/adapter/markdown/markdown";
import { tableText } from "@nexus-stream/adapter/markdown/marks";
import type { BlockContent, Code, List, ListItem, Nodes, PhrasingContent, RootContent, Table } from "mdast";

export function render(markdown: string): string {
	return blocks(parseMarkdown(markdown).children, false);
}

const ENTITIES: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"' };

/** UTF-16 units of what is left when tags and entities have been read. */
export const TEXT_MAX = 4096;
/** Telegram ignores further marks without a word, and with a link its address. */
const MARKS_MAX = 100;
/** All marks together, addresses included: a little less than what Telegram refuses. */
const MARKS_BYTES_MAX = 8000;
const MARK_BYTES = 20;

/** A text of many marks is as long as the share of them that it uses up. */
export function measure(rendered: string): number {
	let marks = 0;
	let bytes = 0;
	for (const [, attributes = ""] of rendered.matchAll(/<[a-z]+( [^>]*)?>/g)) {
		marks += 1;
		bytes += MARK_BYTES + Buffer.byteLength(attributes);
	}
	const share = Math.max(marks / MARKS_MAX, bytes / MARKS_BYTES_MAX);
	return Math.max(withoutMarkup(rendered).length, Math.ceil(share * TEXT_MAX));
}

export const withoutMarkup = (html: string): string =>
	html.replace(/<[^>]*>/g, "").replace(/&(?:amp|lt|gt|quot);/g, (entity) => ENTITIES[entity] ?? entity);

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const attribute = (text: string): string => escaped(text).replace(/"/g, "&quot;");

const blocks = (nodes: readonly RootContent[], quoted: boolean): string =>
	nodes.map((node) => block(node, quoted)).join("\n\n");

/** `quoted`: it stands in a quote, where no other quote can stand. */
function block(node: RootContent, quoted: boolean): string {
	switch (node.type) {
		case "paragraph":
			return inline(node.children);
		case "heading":
			return `<b>${inline(node.children)}</b>`;
		case "code":
			return code(node);
		case "blockquote":
			return quoted
				? blocks(node.children, true).replace(/^/gm, "&gt; ")
				: `<blockquote>${blocks(node.children, true)}</blockquote>`;
		case "list":
			return list(node, quoted);
		case "table":
			return table(node);
		case "thematicBreak":
			return "———";
		default:
			return phrase(node);
	}
}

/** A message of tags without letters would be refused, so a block without code shows its fence. */
function code({ value, lang, meta }: Code): string {
	if (value.trim() === "") return escaped(`\`\`\`${[lang, meta].filter(Boolean).join(" ")}\n\`\`\``);
	const caption = meta ? `${escaped(meta)}\n` : "";
	if (!lang) return `${caption}<pre>${escaped(value)}</pre>`;
	return `${caption}<pre><code class="language-${attribute(lang)}">${escaped(value)}</code></pre>`;
}

function list({ children, ordered, start, spread }: List, quoted: boolean): string {
	const first = start ?? 1;
	return children
		.map((item, index) => listItem(item, ordered ? `${first + index}. ` : "• ", quoted))
		.join(spread ? "\n\n" : "\n");
}

function listItem({ children, checked, spread }: ListItem, mark: string, quoted: boolean): string {
	const box = typeof checked === "boolean" ? (checked ? "☑ " : "☐ ") : "";
	const [head, ...rest] = children;
	// Tags that span lines are not indented: their text is as it is.
	const text = (node: BlockContent | ListItem["children"][number]) =>
		node.type === "code" || node.type === "table" ? block(node, quoted) : indented(block(node, quoted));
	const begun = head === undefined ? "" : head.type === "paragraph" ? block(head, quoted) : `\n${text(head)}`;
	return [`${mark}${box}${begun}`, ...rest.map(text)].join(spread ? "\n\n" : "\n");
}

const indented = (text: string): string => (text.includes("<pre>") ? text : text.replace(/^(?=.)/gm, "   "));

/** In letters only, so links are written out. */
function table({ children }: Table): string {
	const cell = (nodes: readonly PhrasingContent[]) =>
		withoutMarkup(
			inline(nodes).replace(/<a href="([^"]*)">(.*?)<\/a>/g, (_, url: string, label: string) =>
				label === url ? label : `${label} (${url})`,
			),
		);
	const rows = children.map((row) => row.children.map(({ children: nodes }) => cell(nodes)));
	return `<pre>${escaped(tableText(rows))}</pre>`;
}

const inline = (nodes: readonly PhrasingContent[]): string => nodes.map(phrase).join("");

/** Telegram drops other links without a word: their label would stay, and their address would be lost. A host has a dot in its name. */
const LINKABLE =
	/^(?:https?:\/\/(?:[^/?#]*@)?(?:\[[^\]/?#]*\]|[^/?#:]*\.[^/?#:]*)(?:[:/?#]|$)|tg:\/\/[\w-]+(?:[/?]|$))/i;

function phrase(node: Nodes): string {
	switch (node.type) {
		case "strong":
			return `<b>${inline(node.children)}</b>`;
		case "emphasis":
			return `<i>${inline(node.children)}</i>`;
		case "delete":
			return `<s>${inline(node.children)}</s>`;
		case "inlineCode":
			return `<code>${escaped(node.value)}</code>`;
		case "break":
			return "\n";
		case "link":
			return link(node.url, inline(node.children));
		case "image":
			return link(node.url, escaped(node.alt ?? ""));
		case "text":
			return escaped(node.value);
		default:
			// The parser has no other nodes; an unknown one would still show its text.
			if ("value" in node) return escaped(node.value);
			return "children" in node ? node.children.map(phrase).join("") : "";
	}
}

/** An address that Telegram would not link is written out. */
function link(url: string, label: string): string {
	const shown = label.trim() === "" ? escaped(url) : label;
	// Code cannot stand in a link: Telegram keeps one of the two, and the address is worth more.
	if (LINKABLE.test(url)) return `<a href="${attribute(url)}">${shown.replace(/<\/?code>/g, "")}</a>`;
	const words = withoutMarkup(shown);
	return words === url || `mailto:${words}` === url ? shown : `${shown} (${escaped(url)})`;
}
