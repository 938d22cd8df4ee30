/** Markdown that grows piece by piece is the same as markdown parsed at once. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	type Doc,
	EMPTY_DOC,
	grow,
	type MarkdownBlock,
	nextStep,
	parseWhole,
} from "../../packages/web/src/ui/markdown.ts";
import { atEffort } from "../effort.ts";
import { HOSTILE_TEXTS } from "../markdown/texts.ts";

const bare = (blocks: readonly MarkdownBlock[]) =>
	JSON.parse(JSON.stringify(blocks, (key, value) => (key === "position" ? undefined : value)));

const line = fc.oneof(
	fc.constantFrom(
		"",
		"para",
		"# head",
		"#",
		"## ",
		"- item",
		"  - nested",
		"* star",
		"1. one",
		"2) two",
		"> quote",
		">",
		"```",
		"```js",
		"````",
		"~~~",
		"    code",
		"a | b",
		"--|--",
		"-|-",
		"---",
		"===",
		"***",
		"<div>",
		"</div>",
		"<!-- open",
		"-->",
		"[a]: /url",
		"[^n]: note",
		"see [a] and [^n]",
		"**bold",
		"text**",
		"https://example.com/x",
		"- [ ] task",
		"\tx",
		"\uFEFFbom",
		"&amp; &#65;",
		"`code` *em*",
		"![i](data:image/png;base64,AA)",
	),
	fc.string({
		maxLength: 12,
		unit: fc.constantFrom("#", "-", ">", "`", "|", "*", " ", "a", "\t", "[", "]", ":", "1", ".", "~", "=", "<", "\r"),
	}),
);
const source = fc.array(line, { maxLength: 14 }).map((lines) => lines.join("\n"));
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });

function inPieces(text: string, at: readonly number[]): Doc {
	const positions = [...at].map((part) => Math.floor(part * text.length)).sort((a, b) => a - b);
	let doc = EMPTY_DOC;
	for (const position of [...positions, text.length]) {
		doc = grow(doc, text.slice(0, position));
		expect(bare(doc.blocks), JSON.stringify(text.slice(0, position))).toEqual(
			bare(parseWhole(text.slice(0, position))),
		);
	}
	return doc;
}

describe("markdown that grows", () => {
	it("equals the whole text parsed at once, wherever it is cut", () => {
		fc.assert(
			fc.property(source, cuts, (text, at) => void inPieces(text, at)),
			{ numRuns: atEffort(600, 100) },
		);
	});

	it("equals it character by character", () => {
		fc.assert(
			fc.property(source, (text) => {
				let doc = EMPTY_DOC;
				for (let end = 1; end <= text.length; end += 1) doc = grow(doc, text.slice(0, end));
				expect(bare(doc.blocks)).toEqual(bare(parseWhole(text)));
			}),
			{ numRuns: atEffort(120, 100) },
		);
	});

	it.each([
		"text**\n*\n|-\n#",
		"para\n#a",
		"`\n-->\n-|-",
		"para\n```js\nlet a;\n```\nafter",
		"> quote\n```\ncode\n",
		"\uFEFFbom\n\n#\n#",
	])("equals it where an earlier block decides how a later one reads: %j", (text) => {
		let doc = EMPTY_DOC;
		for (let end = 1; end <= text.length; end += 1) {
			doc = grow(doc, text.slice(0, end));
			expect(bare(doc.blocks)).toEqual(bare(parseWhole(text.slice(0, end))));
		}
	});

	it("keeps finished blocks as they are and does not parse them again", () => {
		const first = grow(EMPTY_DOC, "one\n\ntwo\n\nthree\n\n");
		const second = grow(first, "one\n\ntwo\n\nthree\n\nfour");
		expect(first.settled).toBe(2);
		expect(second.blocks[0]).toBe(first.blocks[0]);
		expect(second.blocks[1]).toBe(first.blocks[1]);
	});

	it("needs no parser for more of a code listing, however long it has become", () => {
		// The paragraph before it is settled by two whole lines.
		let doc = grow(EMPTY_DOC, "Here it is:\n```ts\nlet one;\nlet two;\n");
		let text = doc.text;
		for (let index = 0; index < 1000; index += 1) {
			const before = doc.fence;
			expect(before).toBeDefined();
			text += `const value${index} = ${index};\n`;
			doc = grow(doc, text);
			// A parsed text would have its own fence.
			expect(doc.fence).toBe(before);
		}
		expect(doc.blocks).toHaveLength(2);
		expect(bare(doc.blocks)).toEqual(bare(parseWhole(text)));
	});

	it.each(HOSTILE_TEXTS)(
		"hostile text in one piece: $name: bounded work for each step, every letter shown",
		({ text }) => {
			const source = `Before.\n\n${text(66_000)}\n\nAfter.`;
			let doc = EMPTY_DOC;
			for (let steps = 0; doc.text !== source; steps += 1) {
				expect(steps).toBeLessThan(20);
				const before = doc;
				doc = grow(doc, nextStep(doc, source));
				// The blocks that this step parsed.
				expect(doc.text.length - Math.min(before.tail, doc.tail)).toBeLessThan(80_000);
			}
			expect(doc.blocks.at(-1)?.end).toBe(source.length);
			const slow = HOSTILE_TEXTS.find((each) => each.text === text)?.slow;
			expect(doc.blocks.some(({ plain }) => plain)).toBe(
				slow || doc.blocks.some(({ start, end }) => end - start > 60_000),
			);
		},
	);

	it("a long listing stays code when its closing fence comes", () => {
		const listing = `Here:\n\n\`\`\`ts\n${"const value = 1;\n".repeat(5000)}`;
		let doc = EMPTY_DOC;
		while (doc.text !== listing) doc = grow(doc, nextStep(doc, listing));
		doc = grow(doc, `${listing}\`\`\`\n`);
		doc = grow(doc, `${listing}\`\`\`\n\nAfter.\n\nMore.\n\n`);
		expect(doc.blocks.map(({ node, plain }) => [node.type, plain])).toEqual([
			["paragraph", undefined],
			["code", undefined],
			["paragraph", undefined],
			["paragraph", undefined],
		]);
	});

	it("a definition changes what stands before it only while that is cheap", () => {
		const long = "Some words of a paragraph.\n\n".repeat(2000);
		const doc = grow(grow(EMPTY_DOC, "[a]: /url\n\nsee [a]\n\n"), `[a]: /url\n\nsee [a]\n\n${long}`);
		expect(doc.whole).toBe(false);
		expect(doc.defines).toBe(true);
		const more = grow(doc, `${doc.text}more`);
		expect(more.blocks[0]).toBe(doc.blocks[0]);
	});
});
