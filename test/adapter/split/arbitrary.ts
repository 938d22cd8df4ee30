/** Markdown that is hard to cut: fences of all kinds, tables, lists, quotes, joined emoji, long words, every line end. */

import fc from "fast-check";

/** One of the words of a text. */
const oneOf = (text: string): fc.Arbitrary<string> => fc.constantFrom(...text.split(" "));
const grapheme = oneOf("👨‍👩‍👧‍👦 🇩🇪 🇩🇪🇫🇷 é क्षि 👍🏽 ｱ゙ שלום مرحبا 日本語 𝒳 ❤️");
const MARKS =
	"`code` ``a`b`` ```x``` **bold** * - 1. 2) # > ~~~ ``` | [a](http://b.c/d) <b> a. ok! \\ &amp; ___ ~~no~~";
const word = fc.oneof(
	{ weight: 6, arbitrary: fc.stringMatching(/^[a-z]{1,9}$/) },
	{ weight: 1, arbitrary: fc.stringMatching(/^[A-Za-z0-9/.:?=&-]{30,120}$/) },
	{ weight: 2, arbitrary: grapheme },
	{ weight: 2, arbitrary: oneOf(MARKS) },
);
const sentence = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" "));
const codeLine = fc.oneof(
	fc.constant(""),
	sentence,
	fc.constantFrom(
		...["    deep", "\ttab", "``` not here", "// x ```", "- a", "> b", "  ", "x".repeat(90)],
		...["~~~", "```", "`", "}", "````"],
	),
);

const indent = fc.constantFrom("", "", "", " ", "  ", "   ", "    ", "\t");
export const fence = fc
	.record({
		mark: fc.constantFrom("`", "~"),
		length: fc.constantFrom(3, 3, 3, 4, 5, 7),
		indent,
		info: fc.constantFrom("", "js", "python title=x", " c++ "),
		lines: fc.array(codeLine, { maxLength: 12 }),
		closed: fc.constantFrom(true, true, true, true, false),
		longer: fc.constantFrom(0, 0, 2),
	})
	.map(({ mark, length, indent, info, lines, closed, longer }) => {
		const marks = mark.repeat(length);
		const body = lines.map((line) => indent + line);
		return [indent + marks + info, ...body, ...(closed ? [indent + marks + mark.repeat(longer)] : [])].join("\n");
	});

const row = fc
	.array(fc.stringMatching(/^[a-z ]{1,8}$/), { minLength: 2, maxLength: 2 })
	.map((cells) => `| ${cells.join(" | ")} |`);
export const table = fc
	.record({ head: row, rows: fc.array(row, { maxLength: 8 }) })
	.map(({ head, rows }) => [head, "|---|:-:|", ...rows].join("\n"));

const paragraph = fc.array(sentence, { minLength: 1, maxLength: 3 }).map((lines) => lines.join("\n"));
const prefixed = (marker: string, text: string): string => {
	const rest = marker.startsWith(">") ? marker : " ".repeat(marker.length);
	return text
		.split("\n")
		.map((line, index) => (index === 0 ? marker : rest) + line)
		.join("\n");
};

const leaf = fc.oneof(
	{ weight: 4, arbitrary: paragraph },
	{ weight: 4, arbitrary: fence },
	{ weight: 2, arbitrary: table },
	{ weight: 1, arbitrary: sentence.map((text) => `## ${text}`) },
	{ weight: 1, arbitrary: fc.constantFrom("---", "***", "Title\n=====", "    indented\n    code") },
	{ weight: 1, arbitrary: fc.constantFrom("", "\n\n", "   ") },
);
const inside = fc
	.tuple(fc.constantFrom("- ", "* ", "1. ", "2. ", "10) ", "1)  ", "> ", ">", "-   ", "+\t"), leaf)
	.map(([marker, text]) => prefixed(marker, text));
const nested = fc
	.tuple(fc.constantFrom("- ", "> ", "1. ", "3. "), fc.array(fc.oneof(leaf, inside), { minLength: 1, maxLength: 3 }))
	.map(([marker, parts]) => prefixed(marker, parts.join("\n")));

const block = fc.oneof(
	{ weight: 4, arbitrary: leaf },
	{ weight: 2, arbitrary: inside },
	{ weight: 1, arbitrary: nested },
);
const gap = fc.constantFrom("\n", "\n\n", "\n\n", "\n\n\n\n", "\n \n");

export const markdown = fc
	.record({
		parts: fc.array(fc.tuple(block, gap), { minLength: 1, maxLength: 5 }),
		ending: fc.constantFrom("\n", "\n", "\n", "\r\n", "\r"),
	})
	.map(({ parts, ending }) => {
		const text = parts.map(([part, after]) => part + after).join("");
		return ending === "\n" ? text : text.replaceAll("\n", ending);
	});
