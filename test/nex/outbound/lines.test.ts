/** The lines of a `stream` process: neighbouring tokens are one line, and no line is longer than it may be. */

import { expect, it } from "vitest";
import type { SourceEvent } from "../../../packages/daemon/src/nex/delivery/source.ts";
import { createLines } from "../../../packages/daemon/src/nex/delivery/stream/stream-pusher.ts";

const token = (text: string, offset: number): SourceEvent => ({ event: { type: "token", text }, position: 0, offset });

it("I6: tokens merge up to the limit of a line, and each line says how far it goes", () => {
	const rules = { fields: undefined, reasoning: false, parts: false, tokenCharsMax: 10 };
	const events = ["abcd", "efgh", "ij", "kl", "a token that is longer than the limit", "m"].map(token);
	expect(createLines(rules)(events).map((line) => (JSON.parse(line) as { text: string }).text)).toEqual([
		...["abcdefghij", "kl", "a token that is longer than the limit", "m"],
	]);
	const named = createLines({ ...rules, fields: { delivery: "d", runId: "r" } })(events);
	expect(named.map((line) => (JSON.parse(line) as { offset: number }).offset)).toEqual([2, 3, 4, 5]);
});
