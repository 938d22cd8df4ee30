/** Checks a run's frames one by one against PROTOCOL §1 and says which rule is broken, where and how. */

import { checksumOf, crc32 } from "./crc.ts";
import type { BeginFrame, ChunkFrame, EndFrame, Frame } from "./frame.ts";

/** The possible faults, each with the rule that it breaks. */
export const VIOLATION_RULE = {
	second_begin: "P1.4",
	foreign_run: "P1.5",
	chunk_before_begin: "P1.6",
	chunk_after_end: "P1.6",
	end_before_begin: "P1.6",
	second_end: "P1.6",
	gap: "P1.7",
	duplicate: "P1.7",
	empty_chunk: "P1.8",
	wrong_count: "P1.9",
	wrong_checksum: "P1.10",
	wrong_expected_chunks: "P1.11",
	begin_after_final: "P1.12",
	second_final: "P1.12",
	open_at_final: "P1.12",
	no_final: "P1.12",
	no_usage: "P1.13",
} as const satisfies Record<string, `P1.${number}`>;

export type ViolationKind = keyof typeof VIOLATION_RULE;

/** Faults that only lost or changed records can cause: such a log must not be reported as complete. */
const DAMAGE: ReadonlySet<ViolationKind> = new Set<ViolationKind>([
	...(["second_begin", "chunk_before_begin", "chunk_after_end", "end_before_begin", "second_end"] as const),
	...(["gap", "duplicate", "wrong_count", "wrong_checksum", "begin_after_final", "second_final"] as const),
]);

export const isDamage = (violation: Violation | undefined): violation is Violation =>
	violation !== undefined && DAMAGE.has(violation.kind);

export interface Violation {
	rule: (typeof VIOLATION_RULE)[ViolationKind];
	kind: ViolationKind;
	message: string;
	/** The stream concerned; undefined when it is the log as a whole. */
	message_id?: string;
}

export interface Verifier {
	/** The first rule that this frame breaks. The reader continues afterwards: it skips a gap and ignores misplaced frames. */
	push(frame: Frame): Violation | undefined;
	/** Call when no frame follows; with `complete: false` the log may end anywhere. */
	finish(): Violation | undefined;
}

interface VerifiedStream {
	readonly begin: BeginFrame;
	chunks: number;
	crc: number;
	open: boolean;
}

interface Reader {
	readonly streams: Map<string, VerifiedStream>;
	open: number;
	runId: string | undefined;
	finalSeen: boolean;
}

export function createVerifier(options: { complete?: boolean } = {}): Verifier {
	const reader: Reader = { streams: new Map(), open: 0, runId: undefined, finalSeen: false };
	return {
		push: (frame) => push(reader, frame),
		finish() {
			if (options.complete === false || reader.finalSeen) return undefined;
			return violation("no_final", undefined, "the log ends without an end that has final: true");
		},
	};
}

function push(reader: Reader, frame: Frame): Violation | undefined {
	switch (frame.type) {
		case "stream.begin":
			return pushBegin(reader, frame);
		case "stream.chunk":
			return pushChunk(reader, frame);
		case "stream.end":
			return pushEnd(reader, frame);
		default:
			return frame satisfies never;
	}
}

function pushBegin(reader: Reader, frame: BeginFrame): Violation | undefined {
	const id = frame.message_id;
	if (reader.streams.has(id)) return violation("second_begin", id, "the stream was begun before");
	if (reader.finalSeen) return violation("begin_after_final", id, "the run has already had its final end");
	reader.streams.set(id, { begin: frame, chunks: 0, crc: 0, open: true });
	reader.open++;
	reader.runId ??= frame.run_id;
	if (frame.run_id !== reader.runId || frame.correlation_group !== reader.runId) {
		const seen = frame.run_id === reader.runId ? `correlation_group ${frame.correlation_group}` : `run ${frame.run_id}`;
		return violation("foreign_run", id, `${seen} in the log of run ${reader.runId}`);
	}
	return undefined;
}

function pushChunk(reader: Reader, frame: ChunkFrame): Violation | undefined {
	const id = frame.message_id;
	const stream = reader.streams.get(id);
	if (stream === undefined)
		return violation("chunk_before_begin", id, `chunk ${frame.seq_no} of a stream without begin`);
	if (!stream.open) return violation("chunk_after_end", id, `chunk ${frame.seq_no} after the end`);
	const expected = stream.chunks + 1;
	if (frame.seq_no < expected) {
		return violation("duplicate", id, `chunk ${frame.seq_no} again, expected ${expected}`);
	}
	stream.chunks = frame.seq_no;
	stream.crc = crc32(frame.payload, stream.crc);
	if (frame.seq_no > expected) return violation("gap", id, `chunk ${frame.seq_no} follows ${expected - 1}`);
	const { modality, expected_chunks: limit } = stream.begin;
	if (frame.payload === "" && (modality === "text" || modality === "reasoning")) {
		return violation("empty_chunk", id, `chunk ${frame.seq_no} of a ${modality} stream is empty`);
	}
	if (limit !== undefined && frame.seq_no > limit) {
		return violation("wrong_expected_chunks", id, `chunk ${frame.seq_no}, but expected_chunks is ${limit}`);
	}
	return undefined;
}

function pushEnd(reader: Reader, frame: EndFrame): Violation | undefined {
	const id = frame.message_id;
	const stream = reader.streams.get(id);
	const secondFinal = frame.final && reader.finalSeen;
	if (frame.final) reader.finalSeen = true;
	if (secondFinal) return violation("second_final", id, "the run has already had its final end");
	if (stream === undefined) return violation("end_before_begin", id, "end of a stream without begin");
	if (!stream.open) return violation("second_end", id, "the stream was ended before");
	stream.open = false;
	reader.open--;
	return checkEnd(stream, frame) ?? (frame.final ? checkFinal(reader, frame) : undefined);
}

function checkEnd(stream: VerifiedStream, frame: EndFrame): Violation | undefined {
	const id = frame.message_id;
	if (frame.total_chunks !== stream.chunks) {
		return violation("wrong_count", id, `total_chunks is ${frame.total_chunks}, but ${stream.chunks} came`);
	}
	const checksum = checksumOf(stream.crc);
	if (frame.checksum !== checksum) {
		return violation("wrong_checksum", id, `checksum is ${frame.checksum}, but the payloads give ${checksum}`);
	}
	const limit = stream.begin.expected_chunks;
	if (limit !== undefined && frame.reason === "completed" && stream.chunks !== limit) {
		return violation("wrong_expected_chunks", id, `${stream.chunks} chunks, but expected_chunks is ${limit}`);
	}
	return undefined;
}

function checkFinal(reader: Reader, frame: EndFrame): Violation | undefined {
	const id = frame.message_id;
	if (reader.open > 0) return violation("open_at_final", id, `final, but ${reader.open} other streams are open`);
	if (frame.usage === undefined) return violation("no_usage", id, "the final end has no usage (-1 = unknown)");
	return undefined;
}

const violation = (kind: ViolationKind, id: string | undefined, what: string): Violation => ({
	rule: VIOLATION_RULE[kind],
	kind,
	message: id === undefined ? what : `${id}: ${what}`,
	message_id: id,
});
