import fc from "fast-check";
import type { Nodes } from "mdast";
import { describe, expect, it } from "vitest";
import { parseMarkdown } from "../../../packages/adapter/src/markdown/markdown.ts";
import { stateAt } from "../../../packages/adapter/src/markdown/outline.ts";
import {
	cut,
	type MarkdownState,
	splitAll,
	standalone,
	type TextPiece,
} from "../../../packages/adapter/src/markdown/split.ts";
import { atEffort } from "../../effort.ts";
import { normalise } from "../normalise.ts";
import { markdown } from "./arbitrary.ts";

const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Fenced code of a text in order; indented code has no mark at its first character. */
function fencedCode(source: string): string {
	const found: string[] = [];
	const visit = (node: Nodes) => {
		const at = node.position?.start.offset ?? 0;
		if (node.type === "code" && /[`~]/.test(source[at] ?? "")) found.push(node.value);
		if ("children" in node) for (const child of node.children) visit(child);
	};
	visit(parseMarkdown(source));
	return found.join("\n");
}

const letters = (text: string): string => text.replace(/\s+/g, "");

function fault(source: string, pieces: readonly TextPiece[], fits: (text: string) => boolean): string | undefined {
	const starts = new Set([...segments.segment(source)].map((segment) => segment.index));
	let at = 0;
	for (const { from, to, text } of pieces) {
		if (from !== at || to <= from) return `the range ${from}–${to} does not follow ${at}`;
		if (!starts.has(from)) return `cut inside a grapheme at ${from}`;
		if (!fits(text)) return `too long: ${text.length}`;
		const wanted = normalise(source.slice(from, to)).replace(/[`~>]/g, "");
		if (!isWithin(wanted, text)) return `lost text between ${from} and ${to}`;
		at = to;
	}
	return at === source.length ? undefined : `covers ${at} of ${source.length}`;
}

/** Whether all characters of `wanted` are in `text`, in order. */
function isWithin(wanted: string, text: string): boolean {
	let found = 0;
	for (let at = 0; at < text.length; at += 1) if (text[at] === wanted[found]) found += 1;
	return found >= wanted.length;
}

/** An opener longer than this cannot be repeated within the limit; its words are shown as text instead. */
const openersMax = (source: string): number =>
	Math.max(
		0,
		...source
			.split(/[\r\n]+/)
			.filter((line) => /^(?:[ \t>]|(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$))*(?:```|~~~)/.test(line))
			.map((line) => line.length),
	);

/**
 * A list that begins with another number than 1 is one for the parser or not by what stands before it, sometimes by what stood before that:
 * alone in a message it may be read differently. Examples are below; here only the text of such sources is compared.
 */
const OTHER_NUMBER = /^(?:[ \t>]|[-+*][ \t]|1[.)][ \t])*(?!1[.)])\d{1,9}[.)](?:[ \t]|$)/m;

function codeFault(source: string, pieces: readonly TextPiece[], limit: number): string | undefined {
	if (openersMax(source) > limit - 40 || OTHER_NUMBER.test(source)) return undefined;
	const got = letters(pieces.map((piece) => fencedCode(piece.text)).join("\n"));
	return got === letters(fencedCode(source)) ? undefined : `code became ${got}`;
}

/** Cuts while the source grows by chunks, as a draft does. */
function splitGrowing(source: string, fits: (text: string) => boolean, chunk: number): TextPiece[] {
	const pieces: TextPiece[] = [];
	let from = 0;
	let place: MarkdownState | undefined;
	const take = (seen: string, more: boolean) => {
		for (;;) {
			const piece = cut(seen, from, { fits, more, at: place });
			if (piece === undefined) return;
			pieces.push({ from, to: piece.to, text: piece.text });
			from = piece.to;
			place = piece.next;
		}
	};
	for (let seen = chunk; seen < source.length; seen += chunk) take(source.slice(0, seen), true);
	take(source, false);
	return pieces;
}

describe("I7: cutting markdown", () => {
	const whole = (source: string, fits: (text: string) => boolean) => splitAll(source, { fits });
	it.each([
		{ what: "covers the source, fits, keeps graphemes and fences whole", min: 60, max: 400, runs: 7_000, cuts: whole },
		{ what: "covers a growing source just as well", min: 60, max: 300, runs: 2_000, cuts: splitGrowing },
		{ what: "covers and fits at limits as small as 20", min: 20, max: 60, runs: 2_000, cuts: whole },
	])("$what", { timeout: 300_000 }, ({ min, max, runs, cuts }) => {
		const chunk = fc.integer({ min: 1, max: 60 });
		fc.assert(
			fc.property(markdown, fc.integer({ min, max }), chunk, (source, limit, size) => {
				const fits = (text: string) => text.length <= limit;
				const pieces = cuts(source, fits, size);
				expect(fault(source, pieces, fits)).toBeUndefined();
				if (min >= 60) expect(codeFault(source, pieces, limit)).toBeUndefined();
			}),
			{ numRuns: atEffort(runs, 100) },
		);
	});
});

const split = (source: string, limit: number): string[] =>
	splitAll(source, { fits: (text) => text.length <= limit }).map((piece) => piece.text);

describe("where a cut goes", () => {
	it("prefers a blank line, then a line, a sentence, a word, a grapheme", () => {
		expect(split("one one one one\n\ntwo two\ntwo", 24)).toEqual(["one one one one", "two two\ntwo"]);
		expect(split("one one one one\ntwo two two", 24)).toEqual(["one one one one", "two two two"]);
		expect(split("One one one one. Two two two", 24)).toEqual(["One one one one.", "Two two two"]);
		expect(split("one one one one one one two", 24)).toEqual(["one one one one one one", "two"]);
		expect(split("x".repeat(30), 24)).toEqual(["x".repeat(24), "x".repeat(6)]);
	});

	it("takes joined emoji, flags and letters with marks as one", () => {
		const family = "👨‍👩‍👧‍👦";
		expect(split(family.repeat(4), 25)).toEqual([family.repeat(2), family.repeat(2)]);
		expect(split("🇩🇪🇫🇷🇪🇸🇮🇹🇯🇵🇰🇷", 22)).toEqual(["🇩🇪🇫🇷🇪🇸🇮🇹🇯🇵", "🇰🇷"]);
		expect(split("e\u0301".repeat(12), 21)).toEqual(["e\u0301".repeat(10), "e\u0301".repeat(2)]);
		expect(split(`${"word ".repeat(4)}\r\n\r\nend`, 20)).toEqual(["word word word word", "end"]);
	});

	it("closes a fence bare and opens it again with its info, within the limit", () => {
		expect(split("````js title\na();\nb();\nc();\nd();\ne();\n````", 40)).toEqual([
			"````js title\na();\nb();\nc();\nd();\n````",
			"````js title\ne();\n````",
		]);
		expect(split("~~~\n```\nnested\n```\nmore of it\nand more\n~~~", 32)).toEqual([
			"~~~\n```\nnested\n```\n~~~",
			"~~~\nmore of it\nand more\n~~~",
		]);
		expect(split("> ```\n> one line\n> two lines\n> three\n> ```\n> said", 32)).toEqual([
			"> ```\n> one line\n> ```",
			"> ```\n> two lines\n> three\n> ```",
			"> said",
		]);
	});

	it("opens a fence in a list item without the item's indentation", () => {
		expect(split("9. nine\n10. ten\n\n    ```js\n    first();\n      second();\n    ```\n    after", 36)).toEqual([
			"9. nine\n10. ten",
			"```js\nfirst();\n  second();\n```\nafter",
		]);
	});

	it("closes a fence that the text leaves open", () => {
		expect(standalone("```\nhalf")).toBe("```\nhalf\n```");
		expect(cut("```\nhalf", 0, { fits: () => true, more: true })).toBeUndefined();
	});

	it.each([
		["Foo:\n\n```js\nconst a;\nb();\n```\nafter\n", "consta;b();"],
		["- Foo:\n  ~~~~ sh\n  ls -l\n  # ```\n  cat\n  ~~~~\n- after\n", "ls-l#```cat"],
		["> ```\n> one\n> ```\n\nafter\n", "one"],
	])("may be anywhere when what is there has to go, even inside a fence's marks: %j", (source, code) => {
		for (let at = 1; at < source.length; at += 1) {
			const all = { fits: () => true, more: false };
			const head = cut(source.slice(0, at), 0, all);
			const tail = cut(source.slice(at), 0, { ...all, at: head?.next });
			const texts = [head?.text ?? "", tail?.text ?? ""];
			// The first marks of a closing fence count as code until the rest of it has come.
			const shown = letters(
				fencedCode(texts[0] ?? "").replace(/\n(?:`{1,2}|~{1,3})$/, "") + fencedCode(texts[1] ?? ""),
			);
			expect(shown, `${at}: ${JSON.stringify(texts)}`).toBe(code);
			expect(tail?.text, `${at}`).toBe(standalone(source.slice(at), stateAt(source, at)));
		}
	});

	it("does not tear a table that fits a message, nor part a heading from what it heads", () => {
		const table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |";
		expect(split(`Some words.\n\n${table}`, 45)).toEqual(["Some words.", table]);
		expect(split(`Some words.\n\n## All\n\n${table}`, 56)).toEqual(["Some words.", `## All\n\n${table}`]);
	});

	it("repeats the head of a table that is longer than a message, where the limit allows", () => {
		const rows = [1, 2, 3, 4].map((n) => `| row ${n} | value |`);
		const head = "| name | what |\n|---|:-:|";
		const texts = [`${head}\n${rows[0]}\n${rows[1]}`, `${head}\n${rows[2]}\n${rows[3]}`];
		expect(split([head, ...rows].join("\n"), 70)).toEqual(texts);
		const quoted = (text: string) => text.replace(/^/gm, "> ");
		expect(split(quoted([head, ...rows].join("\n")), 80)).toEqual(texts.map(quoted));
		expect(split(`- ${[head, ...rows].join("\n").replaceAll("\n", "\n  ")}`, 75)).toEqual([
			`- ${texts[0]!.replaceAll("\n", "\n  ")}`,
			texts[1],
		]);
		const pieces = splitAll([head, ...rows].join("\n"), { fits: (text) => text.length <= 70 });
		expect(pieces.map(({ from, to }) => [from, to])).toEqual([
			[0, 62],
			[62, 97],
		]);
		// No room for a head and a row: the rows alone.
		expect(split([head, ...rows].join("\n"), 30).slice(1)).toEqual(rows);
	});

	it.each([
		[
			"- | a | b |\n  |---|---|\n  | one row | of a table |\n  | one row | of a table |\n  10) ```\n      code\n      ```\n",
			60,
		],
		[
			"- -     ```\n        some code `code` `code` and more\n        \n        ```\n  10) ```\n          code\n      ```\n",
			60,
		],
		["- ## a heading that is too long for a single message, and runs on\n  2. ```\n     code\n     ```\n", 50],
		["A paragraph of words\n\n- 10) ```\n      code\n      ```\n", 40],
		["-     code of an item which is too long for a message, really\n10) ```\n    code\n    ```\n", 50],
		["3.\n   +\n\n   ```\n   code code code code\n   code code code code\n   ```\n", 40],
		[
			"1. \n   \n   \n   - ```\n     -/-a&.00&=&?0:0-a-?/a::-&:.a-= a\n         deep\n     ```\n   +\t   ```\n        ```\n    ```js\n    ```\n```\n```\n",
			60,
		],
	])("a list stays one behind what was torn, with any number, anywhere: %j", (source, limit) => {
		const fits = (text: string) => text.length <= limit;
		const pieces = splitAll(source, { fits });
		expect(fault(source, pieces, fits)).toBeUndefined();
		expect(letters(pieces.map(({ text }) => fencedCode(text)).join("\n"))).toBe(letters(fencedCode(source)));
	});

	it("continues in a quote: its marks are not taken for text", () => {
		expect(split("> one two three four five\n> six seven\n> eight", 30)).toEqual([
			"> one two three four five",
			"> six seven\n> eight",
		]);
	});

	it("does not part a heading from its underline", () => {
		expect(split("Some words here.\n\nA title\n=======\n\nand its text", 26)).toEqual([
			"Some words here.",
			"A title\n=======",
			"and its text",
		]);
	});

	it("cuts a letter with more marks than a message holds between two of them", () => {
		const source = `a${"\u0301".repeat(100)}${"👩\u200d".repeat(30)}👧 end`;
		const texts = split(source, 40);
		expect(texts.join("")).toBe(source);
		for (const text of texts) expect(text.isWellFormed() && text.length <= 40).toBe(true);
	});

	it("cuts a list between its items, and keeps links and code spans whole", () => {
		expect(split("- one one one\n- two two\n  and two\n- three", 30)).toEqual([
			"- one one one",
			"- two two\n  and two\n- three",
		]);
		expect(split("Have a look at [the long page](https://a.b/c)", 32)).toEqual([
			"Have a look at",
			"[the long page](https://a.b/c)",
		]);
	});

	it("keeps the middle of a line from beginning a block", () => {
		const texts = split("aaaa bbbb cccc dddd - eeee ffff", 20);
		expect(texts.join(" ")).toBe("aaaa bbbb cccc dddd - eeee ffff");
		expect(texts.every((text) => parseMarkdown(text).children.every((node) => node.type === "paragraph"))).toBe(true);
		expect(
			split(`x ${">".repeat(40)}`, 20)
				.map((text) => text.replace("\\", ""))
				.join(""),
		).toBe(`x ${">".repeat(40)}`);
	});

	it("drops the decoration rather than the text where a fence leaves no room", () => {
		const texts = split("```javascript\nabcdefghijklmnopqrstuvwxyz0123456789\n```", 20);
		expect(texts.every((text) => text.length <= 20)).toBe(true);
		expect(texts.map(normalise).join("")).toBe("abcdefghijklmnopqrstuvwxyz0123456789");
	});

	it("says so when not one character fits", () => {
		expect(() => splitAll("abc", { fits: (text) => text.length === 0 })).toThrow(/limit is too small/);
	});

	it("makes no message of white space", () => {
		expect(splitAll(" \n\n ", { fits: () => true })).toEqual([{ from: 0, to: 4, text: "" }]);
	});

	it("is quick on 200 kB, even in one line", () => {
		// Its own time, not that of others on the machine.
		const before = process.cpuUsage();
		const text = "A sentence of some words. Another one, `code`, and more.\n\n".repeat(3500);
		expect(split(text, 2000).length).toBeGreaterThan(100);
		expect(split("x".repeat(200_000), 160).length).toBe(1250);
		expect(split(`\`\`\`\n${"line of code();\n".repeat(12_000)}`, 4000).length).toBeGreaterThan(40);
		const { user, system } = process.cpuUsage(before);
		expect((user + system) / 1000).toBeLessThan(5000);
	});
});
