import fc from "fast-check";
import { expect, test } from "vitest";
import { parseTelegramHtml } from "../../../packages/lab/src/telegram/html.ts";
import { measure, render } from "../../../packages/platforms/src/telegram/format.ts";
import { atEffort } from "../../effort.ts";

test.each([
	["plain & <text>", "plain &amp; &lt;text&gt;"],
	["**bold** *italic* ~~gone~~ `a<b`", "<b>bold</b> <i>italic</i> <s>gone</s> <code>a&lt;b</code>"],
	["# Title\n\ntext", "<b>Title</b>\n\ntext"],
	["```ts\nlet a = 1 < 2;\n```", '<pre><code class="language-ts">let a = 1 &lt; 2;</code></pre>'],
	["```ts\n```", "```ts\n```"],
	["```ts a.ts\nx\n```", 'a.ts\n<pre><code class="language-ts">x</code></pre>'],
	["```\nopen fence", "<pre>open fence</pre>"],
	['[site](https://example.org/?a=1&b="2")', '<a href="https://example.org/?a=1&amp;b=&quot;2&quot;">site</a>'],
	["![a picture](https://example.org/p.png)", '<a href="https://example.org/p.png">a picture</a>'],
	["[local](./file.md)", "local (./file.md)"],
	["[call](tel:+15551230001)", "call (tel:+15551230001)"],
	["[write](mailto:ann@example.org) <ann@example.org>", "write (mailto:ann@example.org) ann@example.org"],
	["[here](http://localhost:3000/a)", "here (http://localhost:3000/a)"],
	["[there](http://user@10.0.0.1:80/?a)", '<a href="http://user@10.0.0.1:80/?a">there</a>'],
	["[`run()`](https://example.org/run)", '<a href="https://example.org/run">run()</a>'],
	["- one\n- two\n  - three", "• one\n• two\n   • three"],
	["3. three\n4. four", "3. three\n4. four"],
	["- [x] done\n- [ ] open", "• ☑ done\n• ☐ open"],
	["> quote\n> > inner", "<blockquote>quote\n\n&gt; inner</blockquote>"],
	["a\n\n---\n\nb", "a\n\n———\n\nb"],
	["| a | b |\n|---|---|\n| 1 | **2** |", "<pre>a | b\n--+--\n1 | 2</pre>"],
	[
		"| a |\n|---|\n| [x](https://a.b) https://c.d |",
		"<pre>a\n---------------------------\nx (https://a.b) https://c.d</pre>",
	],
	["<b>raw</b>", "&lt;b&gt;raw&lt;/b&gt;"],
	["one  \ntwo\\\nthree", "one\ntwo\nthree"],
])("%j", (markdown, html) => {
	expect(render(markdown)).toBe(html);
});

test("I7: no address is lost: Telegram links it, or it is written out", () => {
	const url = fc.constantFrom(
		...["https://a.example/x", "http://localhost/x", "tel:+15550001", "mailto:a@b.example", "ftp://f.example/x"],
		...["tg://user?id=1", "http://[::1]/x", "file:///x", "./x.md", "https://u@h.example", "javascript:x"],
	);
	const label = fc.constantFrom("words", "**bold**", "`code`", "a `b` c", "");
	fc.assert(
		fc.property(label, url, (words, address) => {
			const parsed = parseTelegramHtml(render(`[${words}](${address})`));
			if ("error" in parsed) throw new Error(parsed.error);
			const seen = parsed.text + parsed.entities.map((entity) => entity.url ?? "").join(" ");
			expect(seen).toContain(address);
		}),
	);
});

test("measure counts what people see, and how much of Telegram's marks it takes", () => {
	const words = "a & b 🙂 ".repeat(9);
	expect(measure(render(`**${words.trim()}**`))).toBe(words.trim().length);
	expect(measure(render("**a** ".repeat(100)))).toBe(4096);
	expect(measure(render("**a** ".repeat(101)))).toBeGreaterThan(4096);
	expect(measure(render(`[a](https://example.org/${"x".repeat(300)}) `.repeat(30)))).toBeGreaterThan(4096);
});

const snippet = fc.oneof(
	fc.constantFrom(
		"**",
		"*",
		"_",
		"`",
		"```\n",
		"\n",
		"\n\n",
		"> ",
		"- ",
		"1. ",
		"# ",
		"~~",
		"[",
		"](https://a.b)",
		"|",
		"<b>",
		"&",
		"&amp;",
		"\\",
		"    ",
		"| a | b |\n|---|---|\n",
		"---\n",
		"![",
		"<!--",
		"🙂",
	),
	fc.stringMatching(/^[a-z0-9 ]{1,8}$/),
);

test("whatever the markdown: Telegram can read it, the length is not more than it is taken for, and no word is lost", () => {
	fc.assert(
		fc.property(fc.array(snippet, { maxLength: 30 }), (parts) => {
			const markdown = parts.join("");
			const html = render(markdown);
			const parsed = parseTelegramHtml(html);
			if ("error" in parsed) throw new Error(`${parsed.error} in ${html}`);
			expect(measure(html)).toBeGreaterThanOrEqual(parsed.text.length);
			const seen = parsed.text + parsed.entities.map(({ url = "", language = "" }) => `${url} ${language}`).join(" ");
			const counted = (text: string, letter: string) => text.split(letter).length;
			for (const letter of "cdefghijklnoqrsuvwxyz23456789") {
				expect(counted(seen, letter)).toBeGreaterThanOrEqual(
					counted(markdown.replaceAll("&amp;", "").replaceAll("https://a.b", ""), letter),
				);
			}
		}),
		{ numRuns: atEffort(1000, 100) },
	);
});
