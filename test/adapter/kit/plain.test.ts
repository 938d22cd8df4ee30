import fc from "fast-check";
import { expect, test } from "vitest";
import { lengthOf } from "../../../packages/adapter/src/markdown/length.ts";
import { renderPlain } from "../../../packages/adapter/src/markdown/plain.ts";
import { atEffort } from "../../effort.ts";
import { anyMarkdown, lostLetters } from "../marks.ts";

test.each([
	["plain & <text>", "plain & <text>"],
	["**bold** *italic* ~~gone~~ `a<b`", "bold italic gone a<b"],
	["## Title\n\ntext", "Title\n\ntext"],
	["```ts\nlet a = 1;\n\nlet b;\n```", "let a = 1;\n\nlet b;"],
	["```\n```", "~~~\n~~~"],
	["~~~~", "~~~\n~~~"],
	["[the site](https://example.org)", "the site (https://example.org)"],
	["<https://example.org>", "https://example.org"],
	["![a cat](https://example.org/cat.png)", "a cat (https://example.org/cat.png)"],
	["- one\n- [x] two\n  1. three\n  2. four", "- one\n- [x] two\n  1. three\n  2. four"],
	["9. nine\n10. ten\n\n    more", "9. nine\n10. ten\n\n    more"],
	["> quote\n> > inner", "> quote\n\n> > inner"],
	["| a | b |\n|---|---|\n| 1 | **2** |", "a | b\n--+--\n1 | 2"],
	["a  \nb\n\n***", "a\nb\n\n---"],
])("%j", (markdown, expected) => {
	expect(renderPlain(markdown)).toBe(expected);
});

test("whatever the markdown: no letter is lost", () => {
	fc.assert(
		fc.property(anyMarkdown, (markdown) => {
			expect(lostLetters(markdown, renderPlain(markdown))).toEqual([]);
		}),
		{ numRuns: atEffort(1000, 100) },
	);
});

/** A euro sign takes two septets, and one unit of UCS-2. */
const isGsm = (text: string): boolean => lengthOf(`${text}€`, "sms") === lengthOf(text, "sms") + 2;

test("whatever the markdown: a text of the GSM alphabet stays one", () => {
	fc.assert(
		fc.property(anyMarkdown, (markdown) => {
			const given = markdown.replace(/[`\t🙂]/gu, "");
			fc.pre(isGsm(given));
			expect(isGsm(renderPlain(given))).toBe(true);
		}),
		{ numRuns: atEffort(500, 100) },
	);
});
