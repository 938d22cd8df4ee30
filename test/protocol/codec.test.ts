import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
	chunkDecoder,
	chunkEncoder,
	createFold,
	decodeFrame,
	encodeFrame,
	type Frame,
	frameTypeOf,
	NexusError,
} from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { anyFrame, anyText } from "./arbitrary.ts";

const begin: Frame = {
	type: "stream.begin",
	message_id: "r.1",
	run_id: "r",
	trace_id: "0".repeat(32),
	correlation_group: "r",
	modality: "text",
	content_type: "text/markdown",
	ts: 1,
};
const chunk: Frame = { type: "stream.chunk", message_id: "r.1", seq_no: 1, payload: "hi", is_partial: true, ts: 1 };
const end: Frame = {
	type: "stream.end",
	message_id: "r.1",
	total_chunks: 1,
	checksum: "crc32:d8932aac",
	final: true,
	reason: "completed",
	usage: { input: -1, output: -1 },
	ts: 1,
};

test("P1.1: every frame survives encoding, whatever text is in it", () => {
	fc.assert(
		fc.property(anyFrame, (frame) => {
			expect(decodeFrame(encodeFrame(frame))).toEqual(frame);
		}),
		{ numRuns: atEffort(1000, 100) },
	);
});

test("P1.1: a record is one line that begins with type and message_id", () => {
	fc.assert(
		fc.property(anyFrame, (frame) => {
			const record = encodeFrame(frame);
			expect(record).not.toMatch(/[\n\r]/);
			expect(record.startsWith(`{"type":"${frame.type}","message_id":${JSON.stringify(frame.message_id)},`)).toBe(true);
			expect(frameTypeOf(record)).toBe(frame.type);
		}),
	);
});

test("P1.1: the order of a frame's fields does not depend on the order of the object's keys", () => {
	fc.assert(
		fc.property(anyFrame, (frame) => {
			const reversed = Object.fromEntries(Object.entries(frame).reverse()) as unknown as Frame;
			expect(encodeFrame(reversed)).toBe(encodeFrame(frame));
		}),
	);
});

test("P1.1: the encoder of the hot path gives the same bytes", () => {
	fc.assert(
		fc.property(anyText, fc.integer({ min: 1 }), anyText, fc.nat({ max: 2 ** 50 }), (id, seqNo, payload, ts) => {
			const frame: Frame = { type: "stream.chunk", message_id: id, seq_no: seqNo, payload, is_partial: true, ts };
			expect(chunkEncoder(id)(seqNo, payload, ts)).toBe(encodeFrame(frame));
		}),
	);
});

test("P1.1: the decoder of the hot path reads the same payload among other records, or leaves the record to a parser", () => {
	fc.assert(
		fc.property(anyFrame, anyFrame, fc.boolean(), (before, frame, own) => {
			const id = own ? frame.message_id : before.message_id;
			const head = `${encodeFrame(before)}\n`;
			const record = encodeFrame(frame);
			const read = chunkDecoder(id)(`${head}${record}\n${head}`, head.length, head.length + record.length);
			if (read === undefined) return;
			expect(frame).toMatchObject({ type: "stream.chunk", message_id: id, payload: read, is_partial: true });
		}),
		{ numRuns: atEffort(2000, 100) },
	);
});

test("P1.1: the first chunk of a process is whole, whatever its time", async () => {
	vi.resetModules();
	const fresh = await import("../../packages/protocol/src/protocol.ts");
	const frame: Frame = {
		type: "stream.chunk",
		message_id: "r.1",
		seq_no: 1,
		payload: "a",
		is_partial: true,
		ts: 0,
	};
	expect(fresh.chunkEncoder("r.1")(1, "a", 0)).toBe(encodeFrame(frame));
});

test("P1.1: the decoder of the hot path reads plain text, and nothing of a stream that is not its own or a record that is torn", () => {
	const record = chunkEncoder("r.1")(12, "of [plain] text — ", 3);
	expect(chunkDecoder("r.1")(record, 0, record.length)).toBe("of [plain] text — ");
	expect(chunkDecoder("r.11")(record, 0, record.length)).toBeUndefined();
	for (let end = 1; end < record.length; end++) {
		expect(chunkDecoder("r.1")(`${record.slice(0, end)}\n${record}`, 0, end)).toBeUndefined();
	}
});

test("P1.1: a record that is not a frame has no type", () => {
	for (const record of ["", "{}", '{"type":"stream.other"}', '{"type":"stream.endless"}', 'x{"type":"stream.end"}']) {
		expect(frameTypeOf(record)).toBeUndefined();
	}
});

test("P1.2: unknown fields and modalities are not fatal", () => {
	const frame = decodeFrame(JSON.stringify({ ...begin, modality: "hologram", colour: { of: "the future" } }));
	const fold = createFold();
	fold.push(frame);
	expect(fold.view().violations).toEqual([]);
});

describe("P1.2: a malformed frame is refused with the field that is wrong", () => {
	const without = (frame: Frame, field: string) => ({ ...frame, [field]: undefined });
	const cases: [unknown, RegExp][] = [
		[null, /not a JSON object/],
		[[], /not a JSON object/],
		[{}, /type must be stream.begin/],
		[{ type: "toString" }, /type must be/],
		[without(begin, "run_id"), /stream.begin: run_id must be .* missing/],
		[{ ...begin, message_id: "" }, /message_id/],
		[{ ...begin, expected_chunks: -1 }, /expected_chunks/],
		[{ ...begin, session: null }, /session/],
		[{ ...chunk, seq_no: 0 }, /stream.chunk: seq_no/],
		[{ ...chunk, seq_no: 1.5 }, /seq_no/],
		[{ ...chunk, payload: { text: "hi" } }, /payload must be a text/],
		[without(chunk, "is_partial"), /is_partial/],
		[{ ...chunk, align: { message_id: "r.1" } }, /align/],
		[{ ...chunk, ts: Number.NaN }, /ts must be a number/],
		[{ ...end, total_chunks: "1" }, /stream.end: total_chunks/],
		[{ ...end, checksum: "md5:00" }, /checksum/],
		[{ ...end, checksum: "crc32:D8932AAC" }, /checksum/],
		[{ ...end, final: "yes" }, /final/],
		[{ ...end, reason: "constructor" }, /reason must be one of completed/],
		[{ ...end, error: "boom" }, /error/],
		[{ ...end, usage: { input: 1 } }, /usage/],
		[{ ...end, usage: { input: 1, output: 1, cached: "many" } }, /usage/],
	];
	test.each(cases)("%j", (value, message) => {
		const decode = () => decodeFrame(JSON.stringify(value));
		expect(decode).toThrow(message);
		expect(decode).toThrow(NexusError);
	});

	test("not JSON at all", () => expect(() => decodeFrame("{")).toThrow(/not JSON/));

	test("every other text is refused too, and never with another error", () => {
		fc.assert(
			fc.property(fc.oneof(anyText, fc.json()), (text) => {
				expect(() => decodeFrame(text)).toThrow(NexusError);
			}),
		);
	});
});

test("the first chunk of a process is whole, whatever its clock says", async () => {
	vi.resetModules();
	const fresh = await import("../../packages/protocol/src/frames/codec.ts");
	expect(JSON.parse(fresh.chunkEncoder("m")(1, "x", 0))).toMatchObject({ seq_no: 1, payload: "x", ts: 0 });
});
