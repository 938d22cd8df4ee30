import fc from "fast-check";
import { expect, test } from "vitest";
import { CALL_CHARS_MAX, render, withoutCalls } from "../../../packages/platforms/src/slack/format.ts";
import { platform } from "../../../packages/platforms/src/slack/slack.ts";
import { atEffort } from "../../effort.ts";
import { anyMarkdown, lostLetters } from "../marks.ts";

test.each([
	["plain & <text>", "plain &amp; &lt;text&gt;"],
	["**bold** *italic* ~~gone~~ `a<b`", "*bold* _italic_ ~gone~ `a&lt;b`"],
	["***both***", "_*both*_"],
	["# Title with **bold**\n\ntext", "*Title with bold*\n\ntext"],
	["in**word**s", "in\u200b*word*\u200bs"],
	["```ts\nlet a = 1 < 2;\n```", "```\nlet a = 1 &lt; 2;\n```"],
	["```ts\n```", "```ts\n```"],
	["```ts a.ts\nx\n```", "a.ts\n```\nx\n```"],
	["````\n```\n````", "```\n`\u200b``\n```"],
	["``a ` b``", "a ` b"],
	["[the site](https://example.org/?a=1&b=|2)", "<https://example.org/?a=1&amp;b=%7C2|the site>"],
	["https://example.org/a_b_c", "<https://example.org/a_b_c>"],
	["[**bold** label](https://a.b)", "<https://a.b|bold label>"],
	["![a picture](https://example.org/p.png)", "<https://example.org/p.png|a picture>"],
	["[local](./file.md)", "local (./file.md)"],
	["- one\n- two\n  - three", "• one\n• two\n    • three"],
	["3. three\n4. four", "3. three\n4. four"],
	["- [x] done\n- [ ] open", "• ☑ done\n• ☐ open"],
	["> quote\n> more\n>\n> ```\n> code\n> ```", "> quote\n> more\n\n```\ncode\n```"],
	["a\n\n---\n\nb", "a\n\n———\n\nb"],
	["| a | b |\n|---|---|\n| 1 | **2** |", "```\na | b\n--+--\n1 | 2\n```"],
	["| a |\n|---|\n| [x](https://a.b) |", "```\na\n---------------\nx (https://a.b)\n```"],
	["one  \ntwo\\\nthree", "one\ntwo\nthree"],
	["&lt;!channel&gt; and <!channel>", "&lt;!channel&gt; and &lt;!channel&gt;"],
])("%j", (markdown, mrkdwn) => {
	expect(render(markdown)).toBe(mrkdwn);
});

test("escapes count", () => {
	expect(platform.measure(render("a & b"))).toBe("a &amp; b".length);
});

test("whatever the markdown: no letter is lost, and nothing but our own links stands in angle brackets", () => {
	fc.assert(
		fc.property(anyMarkdown, (markdown) => {
			const rendered = render(markdown);
			expect(lostLetters(markdown, rendered)).toEqual([]);
			const rest = rendered.replace(/<https:[^<>|]*(?:\|[^<>]*)?>/g, "").replace(/^(?:> )+/gm, "");
			expect(rest.replace(/&(?:amp|lt|gt);/g, "").replace(/^[ •\d.]*(?:> )+/gm, "")).not.toMatch(/[<&]/);
		}),
		{ numRuns: atEffort(1000, 100) },
	);
});

test("a stream notifies no member, wherever it is divided, and its text stays the same", () => {
	const word = fc.constantFrom(
		"<",
		"!",
		"@",
		"channel",
		"here",
		"every",
		"one",
		"subteam^S1",
		"U1",
		">",
		"é ",
		"<!-- x -->",
	);
	fc.assert(
		fc.property(fc.array(fc.array(word, { maxLength: 4 }), { maxLength: 8 }), (pieces) => {
			const source = pieces.map((words) => words.join(""));
			let said = "";
			for (const piece of source) said += withoutCalls(piece, said.slice(-CALL_CHARS_MAX));
			expect(said).not.toMatch(/<(?:!(?:channel|here|everyone|group|subteam\^)|@[A-Z0-9])/);
			expect(said.replaceAll("\u200b", "")).toBe(source.join(""));
		}),
	);
	expect(withoutCalls("a < b, <!doctype>, <@>", "")).toBe("a < b, <!doctype>, <@>");
});
