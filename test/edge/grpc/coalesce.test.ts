/** K-STREAM-006, R4-54, Z14: how tokens become chunks, for all ways to cut a text and to read it again. */

import fc from "fast-check";
import { expect, test } from "vitest";
import {
	coalesce,
	type Held,
	NOTHING_HELD,
	release,
	type TextChunk,
	type Token,
} from "../../../packages/daemon/src/services/scenarios/coalesce.ts";

const character = fc.constantFrom("a", " ", "é", "漢", "🧵", "👩‍👩‍👧", "\n", '"');
const token = fc.array(character, { minLength: 1, maxLength: 20 }).map((all) => all.join(""));
/** Batches, as a reader may get them. */
const batches = fc.array(fc.array(token, { maxLength: 8 }), { maxLength: 20 });

const FIRST = 2;

/** Before which batches the held text is released because it waited too long. */
const waits = fc.array(fc.boolean(), { maxLength: 20 });

const numbered = (all: readonly (readonly string[])[]): Token[][] => {
	let offset = FIRST;
	return all.map((batch) => batch.map((text) => ({ text, offset: offset++ })));
};

interface Answer {
	chunks: TextChunk[];
	/** The chunks that were released because they waited too long. */
	released: Set<TextChunk>;
	rest: string;
}

function read(all: readonly (readonly Token[])[], late: readonly boolean[] = []): Answer {
	let held: Held = NOTHING_HELD;
	const chunks: TextChunk[] = [];
	const released = new Set<TextChunk>();
	for (const [n, batch] of all.entries()) {
		if (late[n] && held.bytes > 0) {
			const step = release(held);
			held = step.held;
			chunks.push(step.chunk);
			released.add(step.chunk);
		}
		const step = coalesce(held, batch);
		held = step.held;
		chunks.push(...step.chunks);
	}
	return { chunks, released, rest: held.text };
}

const joined = ({ chunks, rest }: Answer) => chunks.map(({ text }) => text).join("") + rest;

test("the chunks are the text, none but the first and what waited is smaller than 32 bytes, no character is split", () => {
	fc.assert(
		fc.property(batches, waits, (all, late) => {
			const answer = read(numbered(all), late);
			expect(joined(answer)).toBe(all.flat().join(""));
			for (const [n, chunk] of answer.chunks.entries()) {
				const least = n === 0 || answer.released.has(chunk) ? 1 : 32;
				expect(Buffer.byteLength(chunk.text)).toBeGreaterThanOrEqual(least);
				expect(chunk.text.isWellFormed()).toBe(true);
			}
			expect(Buffer.byteLength(answer.rest)).toBeLessThan(32);
		}),
	);
});

test("Z3: reading again after any sequence gives exactly the rest", () => {
	fc.assert(
		fc.property(batches, waits, (all, late) => {
			const tokens = numbered(all);
			const answer = read(tokens, late);
			let before = "";
			for (const { text, sequence } of answer.chunks) {
				before += text;
				const later = tokens.map((batch) => batch.filter(({ offset }) => offset > sequence));
				expect(before + joined(read(later))).toBe(all.flat().join(""));
			}
		}),
	);
});

test("the first chunk goes at once, the next ones as soon as they are large enough, and a backlog goes in few", () => {
	const small = read(numbered([["0"], ["0123456789"], ["0123456789"], ["0123456789"], ["01"], ["rest"]]));
	expect(small.chunks).toEqual([
		{ text: "0", sequence: 2 },
		{ text: "01234567890123456789012345678901", sequence: 6 },
	]);
	expect(small.rest).toBe("rest");
	const backlog = read(numbered([Array.from({ length: 4000 }, () => "ten bytes ")]));
	expect(backlog.chunks).toHaveLength(3);
});

test("a first text that comes with the terminal is left to it, unless it is large enough", () => {
	const tokens = (text: string) => numbered([[text]])[0]!;
	expect(coalesce(NOTHING_HELD, tokens("short"), true)).toMatchObject({ held: { text: "short" }, chunks: [] });
	expect(coalesce(NOTHING_HELD, tokens("x".repeat(32)), true).chunks).toHaveLength(1);
});
