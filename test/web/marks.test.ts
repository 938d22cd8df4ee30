/** Formatted text of platforms: what is marked is marked, and no character gets lost or becomes anything but text. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runsOfMarks, runsOfRanges } from "../../packages/web/src/lab/platform-text.tsx";

const textOf = (runs: readonly { text: string }[]): string => runs.map(({ text }) => text).join("");

describe("ranges", () => {
	it("mark what they cover, also where they overlap", () => {
		const ranges = [
			{ type: "bold", offset: 0, length: 6 },
			{ type: "italic", offset: 3, length: 6 },
			{ type: "unheard_of", offset: 0, length: 9 },
		];
		expect(runsOfRanges("abcdefghij", ranges)).toEqual([
			{ text: "abc", marks: ["bold"] },
			{ text: "def", marks: ["bold", "italic"] },
			{ text: "ghi", marks: ["italic"] },
			{ text: "j", marks: [] },
		]);
	});

	it("keep every character, whatever they claim", () => {
		const range = fc.record({
			type: fc.constantFrom("bold", "code", "pre", "text_link", "x"),
			offset: fc.integer({ min: -3, max: 40 }),
			length: fc.integer({ min: -3, max: 40 }),
		});
		fc.assert(
			fc.property(fc.string({ maxLength: 30 }), fc.array(range, { maxLength: 6 }), (text, ranges) => {
				expect(textOf(runsOfRanges(text, ranges))).toBe(text);
			}),
		);
	});
});

describe("marks", () => {
	it("of WhatsApp and Slack are read at the edge of words", () => {
		expect(runsOfMarks("*bold* and _it *both*_, `a*b*c`, 2*3*4, snake_case_name")).toEqual([
			{ text: "bold", marks: ["bold"] },
			{ text: " and ", marks: [] },
			{ text: "it ", marks: ["italic"] },
			{ text: "both", marks: ["italic", "bold"] },
			{ text: ", ", marks: [] },
			{ text: "a*b*c", marks: ["code"] },
			{ text: ", 2*3*4, snake_case_name", marks: [] },
		]);
		expect(runsOfMarks("before\n```\n*raw*\n```\nafter")).toEqual([
			{ text: "before\n", marks: [] },
			{ text: "*raw*", marks: ["pre"] },
			{ text: "\nafter", marks: [] },
		]);
	});

	it("only ever take marks away: letters and digits stay in order", () => {
		const letters = (text: string) => text.replace(/[^\p{L}\p{N}]/gu, "");
		const piece = fc.constantFrom("*", "_", "~", "`", "```", "\n", " ", "a", "bc", "é", "<b>", "*x*");
		fc.assert(
			fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
				const text = pieces.join("");
				expect(letters(textOf(runsOfMarks(text)))).toBe(letters(text));
			}),
		);
	});
});
