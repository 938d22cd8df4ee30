/** Text cut into sentences, however it comes. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSentences } from "../../../packages/daemon/src/services/realtime/voice.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";

function sentencesOf(deltas: readonly string[]): string[] {
	const sentences = createSentences();
	return [...deltas.flatMap((delta) => sentences.push(delta)), ...sentences.end()];
}

describe("realtime: sentences", () => {
	it.each([
		["One is here. Two follows! Three?", ["One is here.", " Two follows!", " Three?"]],
		["Dr. Jekyll was here. He left.", ["Dr. Jekyll was here.", " He left."]],
		["Pi is 3.14159 and e is 2.71828. So.", ["Pi is 3.14159 and e is 2.71828.", " So."]],
		['She said "stop it." Then she went.', ['She said "stop it."', " Then she went."]],
		["A heading here\nand a line", ["A heading here\n", "and a line"]],
		["これは最初の文章だと思います。これは次の文です。", ["これは最初の文章だと思います。", "これは次の文です。"]],
	])("%j", (text, expected) => expect(sentencesOf([text])).toEqual(expected));

	it("is spoken as soon as it is whole: the space after it says so", () => {
		const sentences = createSentences();
		expect(sentences.push("This is the first.")).toEqual([]);
		expect(sentences.push(" And")).toEqual(["This is the first."]);
	});

	it("a long one is cut at a space, and never inside a character", () => {
		const words = sentencesOf(["word ".repeat(200)]);
		expect(words.every((piece) => piece.length <= 400 && piece.endsWith(" "))).toBe(true);
		const faces = sentencesOf([`x${"😀".repeat(500)}`]);
		expect(faces.every((piece) => piece.isWellFormed() && piece.length <= 400)).toBe(true);
	});

	const text = fc.string({
		unit: fc.constantFrom("a", "Bc", " ", ".", "!", "?", "\n", '"', "。", "」", "😀", "3", "a long stretch of words "),
		maxLength: 300,
	});

	it("for all texts and all ways to cut them: nothing is lost, and the pieces are the same", () => {
		const cuts = fc.array(fc.nat({ max: 40 }), { maxLength: 100 });
		fc.assert(
			fc.property(text, cuts, (whole, sizes) => {
				const deltas: string[] = [];
				let at = 0;
				for (const size of sizes) {
					deltas.push(whole.slice(at, at + size));
					at += size;
				}
				deltas.push(whole.slice(at));
				const pieces = sentencesOf(deltas);
				expect(pieces.join("")).toBe(whole);
				expect(pieces).toEqual(sentencesOf([whole]));
				expect(pieces.every(({ length }) => length > 0)).toBe(true);
			}),
			{ numRuns: atEffort(2000) },
		);
	});
});
