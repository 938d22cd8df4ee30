import fc from "fast-check";
import { expect, test } from "vitest";
import { platform } from "../../../packages/platforms/src/whatsapp/whatsapp.ts";
import { atEffort } from "../../effort.ts";
import { anyMarkdown, lostLetters } from "../marks.ts";

const { render } = platform;

test.each([
	["plain & <text>", "plain & <text>"],
	["**bold** *italic* ~~gone~~ `a<b`", "*bold* _italic_ ~gone~ `a<b`"],
	["## Title\n\ntext", "*Title*\n\ntext"],
	["```ts\nlet a = 1;\n```", "```\nlet a = 1;\n```"],
	["[the site](https://example.org)", "the site (https://example.org)"],
	["<https://example.org>", "https://example.org"],
	["<ann@example.org>", "ann@example.org"],
	["- one\n- two\n  1. three", "- one\n- two\n    1. three"],
	["> quote\n> > inner", "> quote\n\n> > inner"],
	["| a | b |\n|---|---|\n| 1 | 2 |", "```\na | b\n--+--\n1 | 2\n```"],
])("%j", (markdown, expected) => {
	expect(render(markdown)).toBe(expected);
});

test("whatever the markdown: no letter is lost", () => {
	fc.assert(
		fc.property(anyMarkdown, (markdown) => {
			expect(lostLetters(markdown, render(markdown))).toEqual([]);
		}),
		{ numRuns: atEffort(1000, 100) },
	);
});
