/** The tail of a live log, against the simplest thing that could be one. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { Batch } from "../../packages/daemon/src/bus/reading/batch.ts";
import { Tail } from "../../packages/daemon/src/bus/reading/tail.ts";
import { character } from "../character.ts";
import { atEffort } from "../effort.ts";

const record = fc.oneof(
	fc.constant(""),
	fc.string({ unit: character, maxLength: 40 }).map((text) => JSON.stringify(text.toWellFormed())),
	// Larger than a block, or just as large as what is left of one.
	fc.integer({ min: 1, max: 6000 }).map((length) => "x".repeat(length)),
	fc.integer({ min: 1, max: 1500 }).map((length) => "\u20AC".repeat(length)),
);
const batches = fc.array(fc.array(record, { minLength: 1, maxLength: 5 }), { maxLength: 30 });

/** The records of the segment that it becomes together with more of them. */
function cutOf(tail: Tail, begin: number, more: Batch | undefined): string[] {
	const cut = tail.bytesWith(more);
	if (!cut) return [];
	const records = Buffer.from(cut.bytes).toString().split("\n");
	expect([cut.first, cut.count]).toEqual([begin + 1, records.length]);
	return records;
}

it("gives the records after any offset, and those alone, and all of them to a segment (I4)", () => {
	fc.assert(
		fc.property(batches, batches, fc.nat(100), (before, bursts, begin) => {
			const tail = new Tail();
			// Its blocks are used again: what was in them must not show.
			let next = 1;
			const push = (records: readonly string[]) => {
				tail.push(Batch.of(next, records));
				next += records.length;
			};
			for (const burst of before) push(burst);
			tail.clear();
			next = begin + 1;
			for (const burst of bursts) push(burst);
			const all = bursts.flat();
			expect(cutOf(tail, begin, undefined)).toEqual(all);
			expect(cutOf(tail, begin, Batch.of(next, ["one", "more"]))).toEqual([...all, "one", "more"]);
			expect(tail.size).toBe(all.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0));
			for (let after = 0; after < all.length; after++) {
				const batch = tail.after(begin + after)!;
				expect([batch.first, batch.count, batch.records]).toEqual([
					begin + after + 1,
					all.length - after,
					all.slice(after),
				]);
			}
			if (begin > 0) expect(tail.after(begin - 1)).toBeUndefined();
		}),
		{ numRuns: atEffort(200, 60) },
	);
});

it("shares no memory with the tail of another log", () => {
	const [one, other] = [new Tail(), new Tail()];
	one.push(Batch.of(1, ["one"]));
	other.push(Batch.of(1, ["other"]));
	one.push(Batch.of(2, ["more"]));
	one.clear();
	const third = new Tail();
	third.push(Batch.of(1, ["third"]));
	expect(other.after(0)!.records).toEqual(["other"]);
	expect(third.after(0)!.records).toEqual(["third"]);
});
