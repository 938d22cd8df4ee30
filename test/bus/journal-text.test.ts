/** A journal row reads back as it was written. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { Batch } from "../../packages/daemon/src/bus/reading/batch.ts";
import { entriesOf, JournalText } from "../../packages/daemon/src/bus/sqlite/journal.ts";
import { character } from "../character.ts";
import { atEffort } from "../effort.ts";

const entry = fc.record({
	log: fc.maxSafeNat(),
	first: fc.oneof(fc.nat(9), fc.maxSafeNat()).map((offset) => Math.max(1, offset)),
	records: fc.array(
		fc.string({ unit: character, maxLength: 60 }).map((text) => JSON.stringify(text.toWellFormed())),
		{ minLength: 1, maxLength: 4 },
	),
});

const written = (journal: JournalText, entries: readonly { log: number; first: number; records: string[] }[]) => {
	journal.begin();
	for (const { log, first, records } of entries) journal.add({ id: log, batch: Batch.of(first, records) });
	return [...entriesOf(Buffer.from(journal.bytes).toString())];
};

it("gives back every log, offset and record, row after row", () => {
	fc.assert(
		fc.property(fc.array(fc.array(entry, { maxLength: 6 }), { maxLength: 4 }), (rows) => {
			const journal = new JournalText();
			for (const entries of rows) expect(written(journal, entries)).toEqual(entries);
		}),
		{ numRuns: atEffort(200, 60) },
	);
});

it("takes a row that is larger than what it keeps, and small ones after it", () => {
	const journal = new JournalText();
	const large = Array.from({ length: 9 }, (_, n) => ({ log: n, first: 1, records: ["\u20AC".repeat(50_000)] }));
	const small = [{ log: 7, first: 3, records: ["a", "b"] }];
	expect(written(journal, large)).toEqual(large);
	expect(written(journal, small)).toEqual(small);
	journal.begin();
	journal.add({ id: 1, batch: undefined });
	expect(journal.bytes.length).toBe(0);
});
