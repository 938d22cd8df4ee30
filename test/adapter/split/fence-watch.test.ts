import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FenceWatch } from "../../../packages/adapter/src/markdown/outline.ts";

const insideAfter = (...pieces: string[]): boolean => {
	const fence = new FenceWatch();
	for (const piece of pieces) fence.push(piece);
	return fence.inside;
};

describe("the fence watch", () => {
	it.each([
		["plain text", false],
		["```", true],
		["```js\ncode", true],
		["```js\ncode\n```\n", false],
		["````\n```\n", true],
		["~~~\n```\n~~~\n", false],
		["```\n``` not a closer\n", true],
		["``` a `b` c\n", false],
		["> - ```\n>   x\n", true],
		["> - ```\n> outside of the item\n", false],
		["    ``` in indented code\n", false],
		["text with ``` inside\n", false],
	])("%j: %s", (text, inside) => {
		expect(insideAfter(text)).toBe(inside);
	});

	it("says the same however the text is cut", () => {
		const word = fc.constantFrom("```", "~~~", "`", "\n", "js", " ", "> ", "- ", "1. ", "code");
		fc.assert(
			fc.property(fc.array(word), fc.array(fc.nat(200)), (words, cuts) => {
				const text = words.join("");
				const at = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
				const pieces = at.slice(1).map((end, n) => text.slice(at[n], end));
				expect(insideAfter(...pieces)).toBe(insideAfter(text));
			}),
		);
	});

	it("starts over with a new text", () => {
		const fence = new FenceWatch();
		fence.push("```\n");
		fence.reset();
		expect(fence.inside).toBe(false);
	});
});
