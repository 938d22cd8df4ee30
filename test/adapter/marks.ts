/** Markdown of all kinds, and what a rendering of it has lost. */

import fc from "fast-check";

const MARKUP = [
	...["**", "*", "_", "`", "```\n", "\n", "\n\n", "> ", "- ", "1. ", "# ", "~~", "[", "](https://0.1)", "|", "<0>"],
	...["&", "\\", "    ", "| 0 | 0 |\n|---|---|\n", "---\n", "![", "<!--", "🙂", "<!0>", "\t", "  \n"],
];

/** Letters stand only in words, digits only in markup. */
export const anyMarkdown: fc.Arbitrary<string> = fc
	.array(fc.oneof(fc.constantFrom(...MARKUP), fc.stringMatching(/^[a-z ]{1,8}$/)), { maxLength: 30 })
	.map((parts) => parts.join(""))
	// The language of a code block is not part of its text: its letters would count as lost.
	.filter((markdown) => !/(?:```|~~~)[^\n]*[a-z]/.test(markdown));

/** Letters that are fewer in the rendering than in the markdown. */
export function lostLetters(markdown: string, rendered: string): string[] {
	const count = (text: string, letter: string) => text.split(letter).length;
	const said = markdown.replaceAll("https:", "");
	return "abcdefghijklmnopqrstuvwxyz".split("").filter((letter) => count(rendered, letter) < count(said, letter));
}
