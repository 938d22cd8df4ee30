/** How large values are cut, counted and typed on their way into frames (P1.11, P1.16, P1.18), and which trace they are part of. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { COMPLETED, CRASHED } from "../../packages/daemon/src/broker/ending.ts";
import { Framer } from "../../packages/daemon/src/broker/frames/framer.ts";
import {
	type BeginFrame,
	type ChunkFrame,
	createFold,
	decodeFrame,
	type Frame,
} from "../../packages/protocol/src/protocol.ts";
import { text, verified } from "./rig.ts";

const options = { runId: "run_1", session: "main", chunkBytesMax: 1024 * 1024, toolJsonCharsMax: 1_000_000 };
const usage = { input: -1, output: -1 };

function framed(events: readonly EngineEvent[], more: Partial<ConstructorParameters<typeof Framer>[0]> = {}): Frame[] {
	const frames: Frame[] = [];
	const sink = (record: string) => void frames.push(decodeFrame(record));
	const framer = new Framer({ ...options, ...more });
	framer.attach(sink);
	framer.open(1);
	for (const event of events) framer.take(event, 1);
	framer.end(COMPLETED, usage, 1);
	expect(verified(frames)).toBeUndefined();
	return frames;
}

const begins = (frames: readonly Frame[], modality: string): BeginFrame[] =>
	frames.filter((f): f is BeginFrame => f.type === "stream.begin" && f.modality === modality);
const chunks = (frames: readonly Frame[], modality: string): ChunkFrame[] => {
	const ids = new Set(begins(frames, modality).map((begin) => begin.message_id));
	return frames.filter((f): f is ChunkFrame => f.type === "stream.chunk" && ids.has(f.message_id));
};
const part = (modality: string, contentType: string, payload: string): EngineEvent => ({
	type: "part",
	modality,
	contentType,
	payload,
});
const partsShown = (frames: readonly Frame[]) => {
	const fold = createFold();
	for (const frame of frames) fold.push(frame);
	return fold.view().messages.flatMap((message) => message.parts);
};

const bytes = Buffer.from(Array.from({ length: 100_001 }, (_, n) => (n * 7919) % 256));
const picture = bytes.toString("base64");

describe("P1.18: each modality has its own chunk size", () => {
	test.each([
		["audio", 16 * 1024],
		["image", 64 * 1024],
	])("binary %s is cut between quanta: every chunk decodes alone", (modality, size) => {
		const pieces = chunks(framed([part(modality, `${modality}/x`, picture)]), modality);
		expect(pieces.length).toBe(Math.ceil(picture.length / size));
		expect(pieces.every(({ payload }) => payload.length <= size && payload.length % 4 === 0)).toBe(true);
		const decoded = pieces.map(({ payload }) => Buffer.from(payload, "base64"));
		expect(Buffer.concat(decoded).equals(bytes)).toBe(true);
		expect(pieces.map((piece) => piece.is_partial)).toEqual(pieces.map((_, n) => n < pieces.length - 1));
	});

	test("text that looks like base64 keeps its white space", () => {
		const words = "word\n".repeat(30_000);
		const pieces = chunks(framed([part("data", "text/plain", words)]), "data");
		expect(pieces.length).toBeGreaterThan(1);
		expect(pieces.map(({ payload }) => payload).join("")).toBe(words);
	});

	test("base64 in lines is cut between quanta too", () => {
		const lines = picture.replace(/.{76}/g, "$&\r\n");
		const pieces = chunks(framed([part("image", "image/png", lines)]), "image");
		expect(Buffer.concat(pieces.map(({ payload }) => Buffer.from(payload, "base64"))).equals(bytes)).toBe(true);
		expect(pieces.map(({ payload }) => payload).join("")).toBe(picture);
	});

	test("a long text is cut by its size, a tool's status never", () => {
		const long = "x".repeat(100_000);
		const frames = framed([
			text(long),
			{ type: "tool", callId: "c", name: "look", status: "completed", result: long },
			part("card", "application/json", JSON.stringify({ title: long })),
		]);
		expect(Math.max(...chunks(frames, "text").map(({ payload }) => payload.length))).toBeLessThanOrEqual(16 * 1024);
		expect(chunks(frames, "tool")).toHaveLength(1);
		expect(chunks(frames, "card").every(({ payload }) => payload.length <= 64 * 1024)).toBe(true);
	});

	test("`chunkBytesMax` is above them all", () => {
		const pieces = chunks(framed([part("image", "image/png", picture)], { chunkBytesMax: 1000 }), "image");
		expect(pieces.every(({ payload }) => payload.length === 1000 || payload.length === picture.length % 1000)).toBe(
			true,
		);
	});
});

test("P1.11: a part whose count is known says it, and a crash in the middle of it is still well-framed", () => {
	const frames = framed([
		part("card", "application/json", '{"title":"a"}'),
		part("image", "image/png", "AAAA"),
		part("audio", "audio/mpeg", picture),
	]);
	expect(begins(frames, "card")[0]).not.toHaveProperty("expected_chunks");
	expect(begins(frames, "image")[0]!.expected_chunks).toBe(1);
	expect(begins(frames, "audio")[0]!.expected_chunks).toBe(chunks(frames, "audio").length);

	const left = frames.slice(
		0,
		frames.findLastIndex((f) => f.type === "stream.chunk"),
	);
	const framer = new Framer(options);
	for (const frame of left) framer.replay(frame);
	left.push(...framer.collect(() => framer.end(CRASHED, usage, 2)).map(decodeFrame));
	expect(verified(left)).toBeUndefined();
});

test("P1.16: parts of one modality are one stream, and a chunk of another content type says so", () => {
	const events = [
		part("card", "application/json", '{"title":"a"}'),
		part("card", "text/html", "<b>b</b>"),
		part("card", "application/json", '{"title":"c"}'),
	];
	const frames = framed(events);
	expect(begins(frames, "card")).toHaveLength(1);
	expect(chunks(frames, "card").map((chunk) => chunk.content_type)).toEqual([undefined, "text/html", undefined]);
	expect(partsShown(frames).map(({ contentType, payload }) => part("card", contentType, payload))).toEqual(events);
});

test("P1.16: a part that is cut keeps its place among the parts of its modality", () => {
	const events = ["a", "b".repeat(100_000), "c"].map((title) => part("card", "application/json", `{"t":"${title}"}`));
	const frames = framed([text("x"), ...events]);
	expect(partsShown(frames).map(({ payload }) => part("card", "application/json", payload))).toEqual(events);
});

describe("P1.17: the trace", () => {
	const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";

	test("all begins of a run carry the caller's, also those that recovery writes", () => {
		const frames = framed([text("a"), { type: "message" }, text("b")], { traceId });
		expect(begins(frames, "text").map((begin) => begin.trace_id)).toEqual([traceId, traceId]);
		const framer = new Framer(options);
		for (const frame of frames.slice(0, 3)) framer.replay(frame);
		const rest = framer.collect(() => framer.end(CRASHED, usage, 2)).map(decodeFrame);
		expect(begins(rest, "text")[0]!.trace_id).toBe(traceId);
	});
});
