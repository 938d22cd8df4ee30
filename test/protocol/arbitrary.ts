/** Arbitrary texts, frames and whole run logs: what the property tests of this folder range over. */

import fc from "fast-check";
import {
	type BeginFrame,
	type ChunkFrame,
	checksumOf,
	crc32,
	type EndError,
	type EndFrame,
	type Frame,
	type UsageShare,
} from "../../packages/protocol/src/protocol.ts";
import { character } from "../character.ts";

/** Any UTF-16: lone surrogates, control characters, U+2028 and emoji more often than chance would have them. */
export const anyText = fc.oneof(
	fc.string({ unit: character }),
	fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
	fc.string({
		unit: fc.constantFrom("\ud83d", "\ude00", "\u2028", "\u2029", "\n", "\r", "\0", '"', "\\", "é", "€", "😀"),
	}),
);

export const wellFormedText = fc.string({ unit: character, minLength: 1, maxLength: 8 });

/** Values that JSON can represent: -0 becomes 0. */
export const anyJson: fc.Arbitrary<unknown> = fc
	.jsonValue()
	.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

const ts = fc.nat({ max: 2 ** 41 });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const name = anyText.filter((text) => text !== "");

/** Leaves out the fields that are undefined: on a wire they are absent. */
const compact = <T extends object>(value: object): T =>
	Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;

const share = fc
	.record({ agent: optional(name), model: optional(name), usage: fc.constant({ input: 1, output: -1 }) })
	.map((value) => compact<UsageShare>(value));

const fault = fc
	.record({ code: anyText, message: anyText, reason: optional(name) })
	.map((value) => compact<EndError>(value));

export const anyFrame: fc.Arbitrary<Frame> = fc.oneof(
	fc
		.record({
			type: fc.constant("stream.begin" as const),
			message_id: name,
			run_id: name,
			trace_id: name,
			correlation_group: name,
			modality: name,
			content_type: name,
			expected_chunks: optional(fc.nat()),
			session: optional(name),
			target: optional(anyJson),
			agent: optional(name),
			visible: optional(fc.boolean()),
			ts,
		})
		.map((frame) => compact<BeginFrame>(frame)),
	fc
		.record({
			type: fc.constant("stream.chunk" as const),
			message_id: name,
			seq_no: fc.integer({ min: 1 }),
			payload: anyText,
			is_partial: fc.boolean(),
			content_type: optional(name),
			align: optional(fc.record({ message_id: name, seq_no: fc.integer({ min: 1 }) })),
			ts,
		})
		.map((frame) => compact<ChunkFrame>(frame)),
	fc
		.record({
			type: fc.constant("stream.end" as const),
			message_id: name,
			total_chunks: fc.nat(),
			checksum: fc.nat({ max: 0xffffffff }).map(checksumOf),
			final: fc.boolean(),
			reason: fc.constantFrom("completed", "aborted", "error", "timeout", "crashed"),
			error: optional(fault),
			usage: optional(fc.record({ input: fc.integer({ min: -1 }), output: fc.integer({ min: -1 }) })),
			usage_by: optional(fc.array(share, { maxLength: 2 })),
			model: optional(name),
			phase: optional(name),
			synthetic: optional(fc.boolean()),
			ts,
		})
		.map((frame) => compact<EndFrame>(frame)),
);

const RUN = "run_0";
const TS = 1_700_000_000_000;
/** The n-th text stream. */
export const textId = (n: number): string => `${RUN}.t${n}`;

type Chunk = Pick<ChunkFrame, "payload" | "is_partial"> & Partial<ChunkFrame>;

/** A whole stream: begin, its chunks, end. */
function streamOf(id: string, modality: string, chunks: Chunk[], speaker: Partial<BeginFrame>): Frame[] {
	let crc = 0;
	for (const { payload } of chunks) crc = crc32(payload, crc);
	const run = { run_id: RUN, trace_id: "0".repeat(32), correlation_group: RUN };
	const end = { total_chunks: chunks.length, checksum: checksumOf(crc), final: false, reason: "completed" as const };
	const about = { modality, content_type: "text/plain", session: "s", ...speaker };
	return [
		{ type: "stream.begin", message_id: id, ...run, ...about, ts: TS },
		...chunks.map((chunk, at): Frame => ({ type: "stream.chunk", message_id: id, seq_no: at + 1, ...chunk, ts: TS })),
		{ type: "stream.end", message_id: id, ...end, ts: TS },
	];
}

const textChunks = fc.array(
	wellFormedText.map((payload): Chunk => ({ payload, is_partial: true })),
	{ maxLength: 6 },
);
/** Aligned to a chunk of a text stream; sometimes to one that never comes. */
const align = fc.record({ message_id: fc.nat({ max: 3 }).map(textId), seq_no: fc.integer({ min: 1, max: 8 }) });
const partChunks = fc.array(fc.record({ payload: wellFormedText, is_partial: fc.boolean(), align }), { maxLength: 4 });
const toolChunks = fc.subarray(["started", "progress", "completed", "failed"]).map((statuses) =>
	statuses.map((status): Chunk => {
		const payload = JSON.stringify({ type: "tool_status", toolName: "read", toolCallId: "c", status });
		return { payload, is_partial: false };
	}),
);

const otherStream = fc.oneof(
	fc.tuple(fc.constant("reasoning"), textChunks),
	fc.tuple(fc.constant("tool"), toolChunks),
	fc.tuple(fc.constantFrom("card", "audio", "data", "hologram"), partChunks),
);

/** Takes the lanes apart in an order that `picks` decides; each lane keeps its own. */
function interleave(lanes: Frame[][], picks: number[]): Frame[] {
	const rest = lanes.map((lane) => [...lane]);
	const merged: Frame[] = [];
	for (let turn = 0; rest.some((lane) => lane.length > 0); turn++) {
		const ready = rest.filter((lane) => lane.length > 0);
		merged.push(ready[(picks[turn % picks.length] ?? 0) % ready.length]!.shift()!);
	}
	return merged;
}

/** Most runs have one agent without a name. */
const speaker: fc.Arbitrary<Partial<BeginFrame>> = fc.constantFrom(
	...[{}, {}, {}, { agent: "a" }, { agent: "b" }, { agent: "lead", visible: false }],
);

/** The text streams get their names in the order of their begins. */
function renamed(frames: Frame[]): Frame[] {
	const names = new Map<string, string>();
	for (const frame of frames)
		if (frame.type === "stream.begin" && frame.modality === "text") names.set(frame.message_id, textId(names.size));
	return frames.map((frame) => ({ ...frame, message_id: names.get(frame.message_id) ?? frame.message_id }));
}

/** The text stream that was begun last ends the run. */
function finished(frames: Frame[], texts: number): Frame[] {
	const isLast = (frame: Frame) => frame.type === "stream.end" && frame.message_id === textId(texts - 1);
	const end = frames.find(isLast) as EndFrame;
	return [...frames.filter((frame) => !isLast(frame)), { ...end, final: true, usage: { input: -1, output: -1 } }];
}

/** A valid, complete run log: text streams of an agent one after another, agents and other streams side by side, the final end last. */
export const runLog: fc.Arbitrary<Frame[]> = fc
	.record({
		texts: fc.array(fc.tuple(textChunks, speaker), { minLength: 1, maxLength: 4 }),
		others: fc.array(fc.tuple(otherStream, speaker), { maxLength: 4 }),
		picks: fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 40 }),
	})
	.map(({ texts, others, picks }) => {
		const agents = new Map<string | undefined, Frame[]>();
		for (const [n, [chunks, from]] of texts.entries()) {
			const lane = agents.get(from.agent) ?? [];
			agents.set(from.agent, [...lane, ...streamOf(`${RUN}.${n}`, "text", chunks, from)]);
		}
		const [[first, ...rest], ...lanes] = [...agents.values()] as [[Frame, ...Frame[]], ...Frame[][]];
		const beside = others.map(([[modality, chunks], from], n) => streamOf(`${RUN}.o${n}`, modality, chunks, from));
		return finished(renamed([first, ...interleave([rest, ...lanes, ...beside], picks)]), texts.length);
	});
