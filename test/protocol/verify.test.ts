import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
	type ChunkFrame,
	checksumOf,
	crc32,
	createVerifier,
	type EndFrame,
	type Frame,
	VIOLATION_RULE,
	type Violation,
	type ViolationKind,
} from "../../packages/protocol/src/protocol.ts";
import { character } from "../character.ts";
import { runLog } from "./arbitrary.ts";

function verify(frames: Frame[]): Violation[] {
	const verifier = createVerifier();
	const found = frames.map((frame) => verifier.push(frame));
	return [...found, verifier.finish()].filter((violation) => violation !== undefined);
}

/** A position in the log, and another frame of the same stream. */
const indexIn = (frames: Frame[], pick: number): number => pick % frames.length;

describe("I2: a valid log passes, and any single mutation of it is detected", () => {
	test("a valid log has no violation", () => {
		fc.assert(
			fc.property(runLog, (frames) => {
				expect(verify(frames)).toEqual([]);
			}),
		);
	});

	test("a dropped frame", () => {
		fc.assert(
			fc.property(runLog, fc.nat(), (frames, pick) => {
				expect(verify(frames.toSpliced(indexIn(frames, pick), 1))).not.toEqual([]);
			}),
		);
	});

	test("a frame that comes twice, at once or later", () => {
		fc.assert(
			fc.property(runLog, fc.nat(), fc.nat(), (frames, pick, later) => {
				const at = indexIn(frames, pick);
				const place = at + 1 + (later % (frames.length - at));
				expect(verify(frames.toSpliced(place, 0, frames[at]!))).not.toEqual([]);
			}),
		);
	});

	test("two frames of one stream that changed places", () => {
		fc.assert(
			fc.property(runLog, fc.nat(), fc.nat(), (frames, pick, second) => {
				const a = indexIn(frames, pick);
				const same = frames.flatMap((frame, at) =>
					at !== a && frame.message_id === frames[a]!.message_id ? [at] : [],
				);
				const b = same[second % same.length]!;
				expect(verify(frames.with(a, frames[b]!).with(b, frames[a]!))).not.toEqual([]);
			}),
		);
	});

	test("a payload that changed", () => {
		const changed = fc.string({ unit: character, minLength: 1 });
		fc.assert(
			fc.property(runLog, fc.nat(), changed, (frames, pick, payload) => {
				const chunks = frames.filter((frame): frame is ChunkFrame => frame.type === "stream.chunk");
				fc.pre(chunks.length > 0);
				const chunk = chunks[pick % chunks.length]!;
				fc.pre(chunk.payload !== payload);
				const kinds = verify(frames.with(frames.indexOf(chunk), { ...chunk, payload })).map(({ kind }) => kind);
				expect(kinds).toEqual(["wrong_checksum"]);
			}),
		);
	});

	test("a count or checksum that changed", () => {
		fc.assert(
			fc.property(runLog, fc.nat(), fc.nat(), (frames, pick, total_chunks) => {
				const ends = frames.filter((frame): frame is EndFrame => frame.type === "stream.end");
				const end = ends[pick % ends.length]!;
				fc.pre(end.total_chunks !== total_chunks);
				const at = frames.indexOf(end);
				expect(verify(frames.with(at, { ...end, total_chunks })).map(({ kind }) => kind)).toEqual(["wrong_count"]);
				const checksum = end.checksum === "crc32:00000001" ? "crc32:00000002" : "crc32:00000001";
				expect(verify(frames.with(at, { ...end, checksum })).map(({ kind }) => kind)).toEqual(["wrong_checksum"]);
			}),
		);
	});

	test("I3: a log that is cut anywhere", () => {
		fc.assert(
			fc.property(runLog, fc.nat(), (frames, pick) => {
				const cut = frames.slice(0, indexIn(frames, pick));
				expect(verify(cut).map(({ kind }) => kind)).toEqual(["no_final"]);
				const prefix = createVerifier({ complete: false });
				for (const frame of cut) expect(prefix.push(frame)).toBeUndefined();
				expect(prefix.finish()).toBeUndefined();
			}),
		);
	});
});

const begin = (id: string, more = {}): Frame => ({
	type: "stream.begin",
	message_id: id,
	run_id: "r",
	trace_id: "0".repeat(32),
	correlation_group: "r",
	modality: "text",
	content_type: "text/markdown",
	ts: 1,
	...more,
});
const chunk = (id: string, seq_no: number, payload = "hi"): Frame => ({
	type: "stream.chunk",
	message_id: id,
	seq_no,
	payload,
	is_partial: true,
	ts: 1,
});
const HI = "crc32:d8932aac";
const end = (id: string, more = {}): Frame => ({
	type: "stream.end",
	message_id: id,
	total_chunks: 1,
	checksum: HI,
	final: false,
	reason: "completed",
	ts: 1,
	...more,
});
const final = (id: string, more = {}): Frame => end(id, { final: true, usage: { input: -1, output: -1 }, ...more });
const hi = [begin("r.1"), chunk("r.1", 1)];

describe("each violation says which rule, which stream and what", () => {
	const examples: Record<ViolationKind, Frame[]> = {
		second_begin: [...hi, begin("r.1"), final("r.1")],
		foreign_run: [...hi, begin("r.2", { run_id: "other" }), chunk("r.2", 1), end("r.2"), final("r.1")],
		chunk_before_begin: [chunk("r.2", 1), ...hi, final("r.1")],
		chunk_after_end: [...hi, begin("r.2"), chunk("r.2", 1), end("r.2"), chunk("r.2", 2), final("r.1")],
		end_before_begin: [...hi, end("r.2"), final("r.1")],
		second_end: [...hi, begin("r.2"), chunk("r.2", 1), end("r.2"), end("r.2"), final("r.1")],
		gap: [begin("r.1"), chunk("r.1", 2), final("r.1", { total_chunks: 2 })],
		duplicate: [...hi, chunk("r.1", 1), final("r.1")],
		empty_chunk: [...hi, chunk("r.1", 2, ""), final("r.1", { total_chunks: 2 })],
		wrong_count: [...hi, final("r.1", { total_chunks: 2 })],
		wrong_checksum: [...hi, final("r.1", { checksum: "crc32:00000000" })],
		wrong_expected_chunks: [begin("r.1", { expected_chunks: 2 }), chunk("r.1", 1), final("r.1")],
		begin_after_final: [...hi, final("r.1"), begin("r.2")],
		second_final: [...hi, final("r.1"), final("r.1")],
		open_at_final: [...hi, begin("r.2"), final("r.1")],
		no_final: [...hi, end("r.1")],
		no_usage: [...hi, end("r.1", { final: true })],
	};
	test.each(Object.entries(examples))("%s", (kind, frames) => {
		const [violation, ...more] = verify(frames);
		expect(more).toEqual([]);
		expect(violation).toMatchObject({ kind, rule: VIOLATION_RULE[kind as ViolationKind] });
		if (kind !== "no_final") expect(violation!.message).toContain(violation!.message_id);
	});

	test("P1.5: a correlation_group that is not the run's id", () => {
		const kinds = verify([begin("r.1", { correlation_group: "x" }), chunk("r.1", 1), final("r.1")]).map((v) => v.kind);
		expect(kinds).toEqual(["foreign_run"]);
	});

	test("P1.11: more chunks than expected are wrong at once, fewer only when the stream completed", () => {
		const limited = begin("r.1", { expected_chunks: 0 });
		expect(verify([limited, chunk("r.1", 1), final("r.1", { reason: "aborted" })]).map((v) => v.kind)).toEqual([
			"wrong_expected_chunks",
		]);
		const roomy = begin("r.1", { expected_chunks: 5 });
		expect(verify([roomy, chunk("r.1", 1), final("r.1", { reason: "aborted" })])).toEqual([]);
	});

	test("P1.14: an answer in one piece is begin, chunk 1, end", () => {
		expect(verify([...hi, final("r.1")])).toEqual([]);
	});
});

test("I3: after any cut, the ends of the open streams make the log whole again", () => {
	fc.assert(
		fc.property(runLog, fc.nat(), (frames, pick) => {
			const cut = frames.slice(0, 1 + (pick % (frames.length - 1)));
			const open = openStreamsOf(cut);
			fc.pre(open.length > 0);
			const text = open.findLast((stream) => stream.modality === "text") ?? open.at(-1)!;
			const ends = [...open.filter((stream) => stream !== text), text].map((stream) => ({
				...end(stream.message_id, { total_chunks: stream.chunks, checksum: stream.checksum, reason: "crashed" }),
				...(stream === text && { final: true, usage: { input: -1, output: -1 } }),
			}));
			expect(verify([...cut, ...ends])).toEqual([]);
		}),
	);
});

/** Streams without an end, in order of opening. */
function openStreamsOf(frames: readonly Frame[]) {
	const ended = new Set(frames.flatMap((frame) => (frame.type === "stream.end" ? [frame.message_id] : [])));
	const begins = frames
		.filter((frame) => frame.type === "stream.begin")
		.filter((frame) => !ended.has(frame.message_id));
	return begins.map(({ message_id, modality }) => {
		const chunks = frames.filter((frame) => frame.type === "stream.chunk" && frame.message_id === message_id);
		const payload = chunks.map((frame) => ("payload" in frame ? frame.payload : "")).join("");
		return { message_id, modality, chunks: chunks.length, checksum: checksumOf(crc32(payload)) };
	});
}
