/** A run's log read from any position: which events are skipped, which are returned, and their positions. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { createBus } from "../../../packages/daemon/src/bus/bus.ts";
import { readSource, type SourceEvent } from "../../../packages/daemon/src/nex/delivery/source.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { encodeFrame, newRunId, type StreamEvent } from "../../../packages/protocol/src/protocol.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { atEffort } from "../../effort.ts";
import { createToFrames } from "../../protocol/to-frames.ts";
import { quiet } from "../../quiet.ts";

const said: fc.Arbitrary<StreamEvent> = fc.oneof(
	{
		weight: 6,
		arbitrary: fc
			.oneof(fc.string({ minLength: 1 }), fc.string({ minLength: 1, unit: "grapheme" }), fc.constant('"}\n\\","'))
			.map((text): StreamEvent => ({ type: "token", text })),
	},
	{ weight: 1, arbitrary: fc.constant<StreamEvent>({ type: "reasoning", text: "hm" }) },
	{ weight: 1, arbitrary: fc.constant<StreamEvent>({ type: "stream_end", runId: "", final: false }) },
);

/** Writes a run whose records become visible in groups, and reads it from a position. */
async function readFrom(events: readonly StreamEvent[], group: number, position: number): Promise<SourceEvent[]> {
	const bus = createBus({ ...quiet, storage: memoryStorage() });
	const runId = newRunId();
	const frames = createToFrames({ runId, session: "s", now: () => 1 });
	const start: StreamEvent = { type: "stream_start", runId, sessionLabel: "s", target: null };
	const records = [start, ...events, { type: "stream_end", runId, final: true } as const]
		.flatMap((event) => frames.push(event))
		.map(encodeFrame);
	const writer = await bus.create({ log: runId, kind: "run" }, records.slice(0, 1));
	const found: SourceEvent[] = [];
	const signal = new AbortController().signal;
	const reading = (async () => {
		for await (const batch of readSource(bus, runId, { position, signal, log: silentLog })) found.push(...batch);
	})();
	for (let at = 1; at < records.length - 1; at += group) {
		for (const record of records.slice(at, Math.min(at + group, records.length - 1))) writer.append(record);
		await writer.flushed();
	}
	await writer.seal(records.slice(-1));
	await reading;
	await bus.close();
	return found;
}

it("I7: from any position on the tokens are the rest of the text with their positions, and the end comes once", async () => {
	const cases = fc.asyncProperty(
		fc.array(said, { maxLength: 30 }),
		fc.integer({ min: 1, max: 40 }),
		fc.nat({ max: 60 }),
		async (events, group, at) => {
			const text = events.map((event) => (event.type === "token" ? event.text : "")).join("");
			const position = Math.min(at, text.length);
			const found = await readFrom(events, group, position);
			let next = position;
			for (const { event, position: stands } of found) {
				if (event.type !== "token") continue;
				expect(stands).toBe(next);
				expect(text.startsWith(event.text, next)).toBe(true);
				next += event.text.length;
			}
			expect(next).toBe(text.length);
			const offsets = found.map(({ offset }) => offset);
			expect(offsets).toEqual(offsets.toSorted((one, other) => one - other));
			expect(found.at(-1)).toMatchObject({ event: { type: "stream_end", final: true }, position: text.length });
			expect(found.filter(({ event }) => event.type === "stream_end" && event.final !== false)).toHaveLength(1);
		},
	);
	await fc.assert(cases, { numRuns: atEffort(300, 100) });
});
