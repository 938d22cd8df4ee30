/** Text is drawn whole, except for more marks on one character than any language uses. */

import { type ComponentChild, h, type Options, type VNode } from "preact";
import { expect, it } from "vitest";
import { drawnText, drawSafely } from "../../packages/web/src/ui/drawn-text.ts";

it.each([
	["Vietnamese, decomposed", "tiếng Việt".normalize("NFD")],
	["Hebrew with vowels and accents", "בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים"],
	["Thai, Hindi, Tibetan", "น้ำ क्षत्रिय བསྒྲུབས"],
	["emoji with modifiers and joiners", "👩🏽‍🚀👨‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿"],
	["thirty marks", `a${"\u0301".repeat(30)}`],
])("%s stays as it is", (_, text) => {
	expect(drawnText(text.repeat(20))).toBe(text.repeat(20));
});

it("keeps thirty marks of each character, wherever they stand", () => {
	const many = "\u0301".repeat(1000);
	const kept = "\u0301".repeat(30);
	expect(drawnText(`${many}a${many}b\u0301 c${many}`)).toBe(`${kept}a${kept}b\u0301 c${kept}`);
	expect(Array.from(drawnText(`👋${"\u{1f3fd}\u0301\u200d".repeat(1000)}`)).length).toBe(31);
});

it("holds for every text and every attribute that is shown as text, and for no value", () => {
	const text = `a${"\u0301".repeat(100)}`;
	const drawn = `a${"\u0301".repeat(30)}`;
	const options: Options = {};
	drawSafely(options);
	const element = h("input", { title: text, "aria-label": text, value: text }) as unknown as VNode<
		Record<string, unknown>
	>;
	options.vnode?.(element as VNode);
	expect(element.props).toMatchObject({ title: drawn, "aria-label": drawn, value: text });
	const node = { type: null, props: text as ComponentChild } as unknown as VNode;
	options.vnode?.(node);
	expect(node.props).toBe(drawn);
});
