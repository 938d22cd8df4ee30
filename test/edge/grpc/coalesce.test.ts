/** K-STREAM-006, R4-54, Z14: how tokens become chunks, for all ways to cut a text and to read it again. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { coalesce, type Held, NOTHING_HELD, type TextChunk, type Token } from "../../../src/edge/grpc/coalesce.ts";

const character = fc.constantFrom("a", " ", "é", "漢", "🧵", "👩‍👩‍👧", "\n", '"');
const token = fc.array(character, { minLength: 1, maxLength: 20 }).map((all) => all.join(""));
/** Batches, as a reader may get them. */
const batches = fc.array(fc.array(token, { maxLength: 8 }), { maxLength: 20 });

const FIRST = 2;

const numbered = (all: readonly (readonly string[])[]): Token[][] => {
	let offset = FIRST;
	return all.map((batch) => batch.map((text) => ({ text, offset: offset++ })));
};

function read(all: readonly (readonly Token[])[]): { chunks: TextChunk[]; rest: string } {
	let held: Held = NOTHING_HELD;
	const chunks: TextChunk[] = [];
	for (const batch of all) {
		const step = coalesce(held, batch);
		held = step.held;
		chunks.push(...step.chunks);
	}
	return { chunks, rest: held.text };
}

const joined = ({ chunks, rest }: ReturnType<typeof read>) => chunks.map(({ text }) => text).join("") + rest;

test("the chunks are the text, none is smaller than 32 bytes, no character is split", () => {
	fc.assert(
		fc.property(batches, (all) => {
			const answer = read(numbered(all));
			expect(joined(answer)).toBe(all.flat().join(""));
			for (const { text } of answer.chunks) {
				expect(Buffer.byteLength(text)).toBeGreaterThanOrEqual(32);
				expect(text.isWellFormed()).toBe(true);
			}
			expect(Buffer.byteLength(answer.rest)).toBeLessThan(32);
		}),
	);
});

test("Z3: reading again after any sequence gives exactly the rest", () => {
	fc.assert(
		fc.property(batches, (all) => {
			const tokens = numbered(all);
			const answer = read(tokens);
			let before = "";
			for (const { text, sequence } of answer.chunks) {
				before += text;
				const later = tokens.map((batch) => batch.filter(({ offset }) => offset > sequence));
				expect(before + joined(read(later))).toBe(all.flat().join(""));
			}
		}),
	);
});

test("a chunk goes as soon as it is large enough, and a backlog goes in few", () => {
	const small = read(numbered([["0123456789"], ["0123456789"], ["0123456789"], ["01"], ["rest"]]));
	expect(small).toEqual({ chunks: [{ text: "01234567890123456789012345678901", sequence: 5 }], rest: "rest" });
	const backlog = read(numbered([Array.from({ length: 4000 }, () => "ten bytes ")]));
	expect(backlog.chunks).toHaveLength(3);
});
