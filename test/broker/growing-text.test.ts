import { constants } from "node:buffer";
import fc from "fast-check";
import { expect, it } from "vitest";
import { GrowingText } from "../../packages/daemon/src/broker/frames/text.ts";
import { character } from "../character.ts";
import { atEffort } from "../effort.ts";

it("is the pieces in order, wherever a character was cut", () => {
	const pieces = fc.array(fc.string({ unit: character, maxLength: 300 }), { maxLength: 20 });
	const cuts = fc.array(fc.nat(300), { maxLength: 20 });
	fc.assert(
		fc.property(pieces, cuts, (whole, at) => {
			const all = whole.join("");
			const places = [0, ...at.map((place) => Math.min(place, all.length)), all.length].sort((a, b) => a - b);
			const text = new GrowingText();
			for (let n = 1; n < places.length; n++) {
				text.push(all.slice(places[n - 1], places[n]));
				expect(text.length).toBe(places[n]);
				// Reading it in the middle does not change what follows.
				if (n % 3 === 0) expect(text.toString()).toBe(all.slice(0, places[n]).toWellFormed());
			}
			expect(text.toString()).toBe(all.toWellFormed());
		}),
		{ numRuns: atEffort(300, 100) },
	);
});

it("has nothing in it at first", () => {
	expect([new GrowingText().toString(), new GrowingText().length]).toEqual(["", 0]);
});

it("refuses what no string could hold, and stays as it was", () => {
	const text = new GrowingText();
	text.push("a");
	expect(() => text.push({ length: constants.MAX_STRING_LENGTH } as string)).toThrow(RangeError);
	expect([text.toString(), text.length]).toEqual(["a", 1]);
});
