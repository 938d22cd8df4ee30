/** Markdown as a mail: plain text, which every reader can show, and HTML. */

import { SYNTAX } from "@nexus-stream/adapter/markdown/markdown";
import { isHostile } from "@nexus-stream/protocol/markdown";
import { micromark } from "micromark";
import { gfmHtml } from "micromark-extension-gfm";

/** A mail has both forms, so they are made when it is composed. */
export const render = (markdown: string): string => markdown;

/** Mail readers know no style sheets: what matters is said at every tag. */
const STYLES: Readonly<Record<string, string>> = {
	pre: "background:#f6f8fa;padding:8px;overflow-x:auto;font-family:monospace",
	blockquote: "margin:0 0 0 8px;padding-left:8px;border-left:2px solid #ccc;color:#555",
	table: "border-collapse:collapse",
	th: "border:1px solid #ccc;padding:4px 8px",
	td: "border:1px solid #ccc;padding:4px 8px",
};

/** HTML and links that do something are text: what an agent says is not trusted. */
export function toHtml(markdown: string): string {
	if (isHostile(markdown)) return `<p style="white-space:pre-wrap">${escaped(markdown)}</p>`;
	const html = micromark(markdown, { extensions: SYNTAX, htmlExtensions: [gfmHtml()] });
	return html.replace(
		/<(pre|blockquote|table|th|td)(?=[ >])/g,
		(tag, name: string) => `${tag} style="${STYLES[name]}"`,
	);
}

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
