/** CommonMark with GitHub's tables, strikethrough, task items and links. All else (raw HTML, footnotes …) is plain text: nothing of an answer may vanish. */

import { isHostile } from "@nexus-stream/protocol/markdown";
import type { Root } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

const asText = {
	disable: {
		null: [
			"htmlFlow",
			"htmlText",
			"definition",
			"gfmFootnoteDefinition",
			"gfmFootnoteCall",
			"gfmPotentialFootnoteCall",
		],
	},
};

/** The syntax that `parseMarkdown` reads, for renderers that make HTML without a tree. */
export const SYNTAX: ReturnType<typeof gfm>[] = [gfm(), asText];

/** Returns one paragraph of plain text for markdown that would take the parser too long or overflow its stack, so that no answer fails for its content. */
export function parseMarkdown(markdown: string): Root {
	if (isHostile(markdown)) return asPlainText(markdown);
	try {
		return fromMarkdown(markdown, { extensions: SYNTAX, mdastExtensions: [gfmFromMarkdown()] });
	} catch (cause) {
		if (!(cause instanceof RangeError)) throw cause;
		return asPlainText(markdown);
	}
}

const asPlainText = (value: string): Root => ({
	type: "root",
	children: [{ type: "paragraph", children: [{ type: "text", value }] }],
});
