/** The bytes of the hot path, for any record: an independent parser reads back what was written. */

import { createParser, type EventSourceMessage } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Batch } from "../../packages/daemon/src/bus/bus.ts";
import { sharedEncoding } from "../../packages/daemon/src/edge/stream/encoding.ts";
import { NDJSON, SSE, upTo } from "../../packages/daemon/src/edge/stream/stream.ts";
import { encodeFrame, type Frame } from "../../packages/protocol/src/protocol.ts";
import { character } from "../character.ts";

const payload = fc.oneof(
	fc.string({ unit: character }),
	fc.constantFrom("\n", "\r\n\r\n", "data: x\n\nid: 9\n", "\u2028\u2029", "\0", "🙂"),
);
const frame: fc.Arbitrary<Frame> = fc.oneof(
	payload.map(
		(text): Frame => ({ type: "stream.chunk", message_id: "r.1", seq_no: 1, payload: text, is_partial: true, ts: 1 }),
	),
	payload.map(
		(text): Frame => ({
			type: "stream.end",
			message_id: "r.1",
			total_chunks: 1,
			checksum: "crc32:00000000",
			final: true,
			reason: "error",
			error: { code: "internal", message: text },
			ts: 1,
		}),
	),
);
const batch: fc.Arbitrary<Batch> = fc
	.record({
		first: fc.integer({ min: 1, max: 2 ** 40 }),
		records: fc.array(frame.map(encodeFrame), { minLength: 1, maxLength: 20 }),
	})
	.map(({ first, records }) => Batch.of(first, records));

describe("encoding", () => {
	it("P6.8: any batch as SSE is read back record by record, with its offsets and types", () => {
		fc.assert(
			fc.property(batch, (given) => {
				const { first, records } = given;
				const events: EventSourceMessage[] = [];
				createParser({ onEvent: (event) => void events.push(event) }).feed(SSE.open().text(given)!);
				expect(events).toEqual(
					records.map((data, index) => ({ id: String(first + index), event: (JSON.parse(data) as Frame).type, data })),
				);
			}),
		);
	});

	it("P6.7: any batch as NDJSON is one line each", () => {
		fc.assert(
			fc.property(batch, (given) => {
				expect(NDJSON.open().text(given)!.split("\n")).toEqual([...given.records, ""]);
			}),
		);
	});

	it("I6: a batch is encoded once while it is shared, and every reader gets the same bytes in whatever order they come", () => {
		fc.assert(
			fc.property(
				fc.array(batch, { minLength: 1, maxLength: 4 }),
				fc.array(fc.nat({ max: 3 }), { maxLength: 30 }),
				(batches, reads) => {
					let encoded = 0;
					const encode = sharedEncoding((given) => {
						encoded++;
						return Buffer.from(SSE.open().text(given)!);
					});
					for (const read of reads) {
						const given = batches[read % batches.length]!;
						expect(Buffer.from(encode(given)!).toString()).toBe(SSE.open().text(given)!.toWellFormed());
					}
					for (let i = 0; i < 3; i++) encode(batches[0]!);
					const before = encoded;
					for (let i = 0; i < 100; i++) encode(batches[0]!);
					expect(encoded).toBe(before);
				},
			),
		);
	});

	it("upTo cuts at the offset, wherever the batches lie", () => {
		fc.assert(
			fc.property(fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 6 }), fc.nat({ max: 30 }), (sizes, last) => {
				let offset = 0;
				const left = [...sizes];
				const head = sizes.reduce((sum, size) => sum + size, 0);
				const cursor = upTo(
					{
						get offset() {
							return offset;
						},
						ended: false,
						next() {
							const size = left.shift();
							if (size === undefined) return undefined;
							const first = offset + 1;
							offset += size;
							return Batch.of(
								first,
								Array.from({ length: size }, (_, i) => `${first + i}`),
							);
						},
						check() {},
						onWake() {},
						close() {},
					},
					Math.min(last, head),
				);
				const seen: string[] = [];
				for (let found = cursor.next() as Batch | undefined; found; found = cursor.next() as Batch | undefined)
					seen.push(...found.records);
				expect(seen).toEqual(Array.from({ length: Math.min(last, head) }, (_, i) => `${i + 1}`));
				expect(cursor.ended).toBe(true);
			}),
		);
	});
});
