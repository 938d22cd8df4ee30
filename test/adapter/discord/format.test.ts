import fc from "fast-check";
import { expect, test } from "vitest";
import { render } from "../../../packages/platforms/src/discord/format.ts";
import { atEffort } from "../../effort.ts";

test.each([
	["plain **bold** *it* `code` & <x>", "plain **bold** *it* `code` & <x>"],
	["__strong__ and _it_", "**strong** and _it_"],
	["## Two\n\n#### Four", "## Two\n\n**Four**"],
	["Title\n=====\n\ntext", "# Title\n\ntext"],
	["a\n\n***\n\nb", "a\n\n———\n\nb"],
	["![alt](https://a.b/c.png)", "[alt](https://a.b/c.png)"],
	["![](https://a.b/c.png)", "https://a.b/c.png"],
	["a || b || c and `x || y`", "a \\|\\| b \\|\\| c and `x || y`"],
	["one\\\ntwo", "one\ntwo"],
	["| a | b |\n|---|---|\n| 1 | two |", "```\na | b\n--+----\n1 | two\n```"],
	["```js\n__x__ || y\n```", "```js\n__x__ || y\n```"],
	["- a\n  - [ ] b\n\n> q", "- a\n  - [ ] b\n\n> q"],
])("%j", (markdown, rendered) => {
	expect(render(markdown)).toBe(rendered);
});

const snippet = fc.oneof(
	fc.constantFrom(
		"**",
		"__",
		"_",
		"`",
		"```\n",
		"\n",
		"\n\n",
		"> ",
		"- ",
		"# ",
		"##### ",
		"===\n",
		"---\n",
		"![",
		"](u)",
		"|",
		"||",
		"<b>",
		"\\",
		"  \n",
		"| a | b |\n|---|---|\n",
	),
	fc.stringMatching(/^[a-z0-9 ]{1,8}$/),
);

test("whatever the markdown: no letter is lost, and the order stays", () => {
	fc.assert(
		fc.property(fc.array(snippet, { maxLength: 30 }), (parts) => {
			const letters = (text: string) => text.replace(/[^a-z0-9]/g, "");
			const markdown = parts.join("");
			expect(letters(render(markdown))).toBe(letters(markdown));
		}),
		{ numRuns: atEffort(1000, 100) },
	);
});
