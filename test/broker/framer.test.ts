import type { EngineEvent } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ABORTED, COMPLETED, CRASHED, type Ending } from "../../packages/daemon/src/broker/ending.ts";
import { Framer } from "../../packages/daemon/src/broker/frames/framer.ts";
import { type ChunkFrame, decodeFrame, type Frame } from "../../packages/protocol/src/protocol.ts";
import { character } from "../character.ts";
import { finalEnd, text, verified } from "./rig.ts";

const options = { runId: "run_1", session: "main", chunkBytesMax: 64, toolJsonCharsMax: 1000 };
const usage = { input: -1, output: -1 };

/** The frames of a run that yields these events. */
function frame(events: readonly EngineEvent[], ending: Ending = COMPLETED, framer = new Framer(options)): Frame[] {
	const frames: Frame[] = [];
	const sink = (record: string) => void frames.push(decodeFrame(record));
	framer.streams.attach(sink);
	framer.open(1);
	for (const event of events) framer.take(event, 1);
	framer.end(ending, usage, 1);
	return frames;
}

const card = (payload: string): EngineEvent => ({
	type: "part",
	modality: "card",
	contentType: "application/json",
	payload,
});
const tool = (callId: string, status: "started" | "progress" | "completed" | "failed", more = {}): EngineEvent => ({
	type: "tool",
	callId,
	name: "look",
	status,
	...more,
});

const unit = fc.oneof(fc.string({ unit: character }), fc.string({ unit: "grapheme", maxLength: 200 }));
const anyEvent: fc.Arbitrary<EngineEvent> = fc.oneof(
	{ weight: 4, arbitrary: unit.map(text) },
	unit.map((delta): EngineEvent => ({ type: "reasoning", delta })),
	fc.constant<EngineEvent>({ type: "message" }),
	fc
		.tuple(
			fc.constantFrom("c1", "c2", "c3"),
			fc.constantFrom("started", "progress", "completed", "failed"),
			fc.jsonValue(),
		)
		.map(([callId, status, value]) => tool(callId, status, { args: value, result: value })),
	fc
		.tuple(fc.constantFrom("card", "audio", "data", "my-own"), unit)
		.map(([modality, payload]): EngineEvent => ({ type: "part", modality, contentType: "text/x", payload })),
	fc.constant<EngineEvent>({ type: "usage", input: 1, output: 1 }),
	fc.constantFrom("start", "end").map((phase): EngineEvent => ({ type: "compaction", phase })),
);
const anyEvents = fc.array(anyEvent, { maxLength: 40 });
const anyEnding = fc.constantFrom<Ending>(COMPLETED, ABORTED, CRASHED, { reason: "timeout" }, { reason: "error" });

const chunksOf = (frames: readonly Frame[], modality: string): ChunkFrame[] => {
	const ids = new Set(
		frames.filter((f) => f.type === "stream.begin" && f.modality === modality).map((f) => f.message_id),
	);
	return frames.filter((f): f is ChunkFrame => f.type === "stream.chunk" && ids.has(f.message_id));
};
const said = (frames: readonly Frame[], modality: string) =>
	chunksOf(frames, modality)
		.map((chunk) => chunk.payload)
		.join("");

describe("for all sequences of events", () => {
	test("I2, I3: the log is well-framed and ends with its one final end", () => {
		fc.assert(
			fc.property(anyEvents, anyEnding, (events, ending) => {
				const frames = frame(events, ending);
				expect(verified(frames)).toBeUndefined();
				expect(finalEnd(frames).reason).toBe(ending.reason);
				expect(frames.filter((f) => f.type === "stream.end" && f.final)).toHaveLength(1);
			}),
		);
	});

	test("P1.10: deltas of any UTF-16 units become whole characters, the same ones", () => {
		const units = fc.oneof(fc.integer({ min: 0xd800, max: 0xdfff }), fc.constantFrom(0x41, 0xe9, 0x20ac));
		const delta = fc.array(units, { maxLength: 30 }).map((codes) => String.fromCharCode(...codes));
		fc.assert(
			fc.property(fc.array(delta, { maxLength: 10 }), (deltas) => {
				const frames = frame(deltas.map(text));
				expect(verified(frames)).toBeUndefined();
				for (const { payload } of chunksOf(frames, "text")) expect(payload.isWellFormed()).toBe(true);
				expect(said(frames, "text")).toBe(deltas.join("").toWellFormed());
			}),
		);
	});

	test("no text, reasoning or part chunk is larger than the limit, and none cuts a character in two", () => {
		fc.assert(
			fc.property(fc.string({ unit: "grapheme", minLength: 20, maxLength: 400 }), (long) => {
				const frames = frame([text(long), card(long)]);
				for (const chunk of [...chunksOf(frames, "text"), ...chunksOf(frames, "card")]) {
					expect(Buffer.byteLength(chunk.payload)).toBeLessThanOrEqual(options.chunkBytesMax);
					expect(chunk.payload.isWellFormed()).toBe(true);
				}
				expect(said(frames, "card")).toBe(long);
				expect(chunksOf(frames, "card").map((chunk) => chunk.is_partial)).toEqual(
					chunksOf(frames, "card").map((_, n, all) => n < all.length - 1),
				);
			}),
		);
	});

	test("I3: a framer that replays any beginning of the log ends it well", () => {
		fc.assert(
			fc.property(anyEvents, fc.nat(), (events, at) => {
				const whole = frame(events);
				const left = whole.slice(0, at % whole.length);
				const framer = new Framer(options);
				for (const one of left) framer.streams.replay(one);
				expect(framer.streams.finished).toBe(false);
				const rest = framer.streams.collect(() => framer.end(CRASHED, usage, 2)).map(decodeFrame);
				expect(verified([...left, ...rest])).toBeUndefined();
				expect(finalEnd(rest)).toMatchObject({ reason: "crashed", synthetic: true, error: { code: "crashed" } });
			}),
		);
	});
});

const shape = (frames: readonly Frame[]) =>
	frames.map((f) => {
		const n = f.message_id.replace("run_1.", "");
		if (f.type === "stream.begin") return `${n} begin ${f.modality}`;
		if (f.type === "stream.chunk") return `${n}#${f.seq_no} ${f.payload}`;
		return `${n} end ${f.reason}${f.final ? " final" : ""}`;
	});

describe("streams", () => {
	test("a message event opens the next text stream only when something was said", () => {
		expect(shape(frame([{ type: "message" }, text("a"), { type: "message" }, { type: "message" }, text("b")]))).toEqual(
			[...["1 begin text", "1#1 a", "1 end completed", "2 begin text", "2#1 b", "2 end completed final"]],
		);
	});

	test("reasoning is one stream until something else comes", () => {
		const reasoning = (delta: string): EngineEvent => ({ type: "reasoning", delta });
		expect(
			shape(frame([reasoning("a"), { type: "usage", input: 1, output: 1 }, reasoning("b"), text("c"), reasoning("d")])),
		).toEqual([
			...["1 begin text", "2 begin reasoning", "2#1 a", "2#2 b", "2 end completed", "1#1 c"],
			...["3 begin reasoning", "3#1 d", "3 end completed", "1 end completed final"],
		]);
	});

	test("parts of one kind in one message are one stream, aligned with the text before them", () => {
		const frames = frame([card("0"), text("a"), text("b"), card("1"), { type: "message" }, text("c"), card("2")]);
		expect(chunksOf(frames, "card").map(({ message_id, payload, align }) => [message_id, payload, align])).toEqual([
			["run_1.2", "0", undefined],
			["run_1.2", "1", { message_id: "run_1.1", seq_no: 2 }],
			["run_1.4", "2", { message_id: "run_1.3", seq_no: 1 }],
		]);
	});

	test("I12: a tool that is running at the end gets a failed status, then its end, before the text's", () => {
		const frames = frame([tool("c1", "started"), text("x")], ABORTED);
		expect(shape(frames).slice(-3)).toEqual([
			'2#2 {"type":"tool_status","toolName":"look","toolCallId":"c1","status":"failed","summary":"stopped"}',
			"2 end aborted",
			"1 end aborted final",
		]);
	});

	test("a tool that was never started is still framed", () => {
		expect(shape(frame([tool("c1", "completed")])).slice(1, 4)).toEqual([
			"2 begin tool",
			'2#1 {"type":"tool_status","toolName":"look","toolCallId":"c1","status":"completed"}',
			"2 end completed",
		]);
	});

	test("a tool's result that is too long is cut and says so", () => {
		const [chunk] = chunksOf(frame([tool("c1", "completed", { result: { text: "x".repeat(5000) } })]), "tool");
		expect(chunk!.payload.length).toBeLessThan(1500);
		expect(JSON.parse(chunk!.payload).result).toMatch(/… \[cut: 5011 characters in all\]$/);
	});

	test("compaction is a data stream", () => {
		const framer = new Framer(options);
		const frames = frame([{ type: "compaction", phase: "start" }], COMPLETED, framer);
		expect(shape(frames).slice(1, 3)).toEqual(["2 begin data", '2#1 {"compaction":"start"}']);
		const whole = frame([
			{ type: "compaction", phase: "start" },
			{ type: "compaction", phase: "end" },
		]);
		expect(shape(whole).slice(3, 5)).toEqual(['2#2 {"compaction":"end"}', "2 end completed"]);
	});
});

test.each([
	null,
	undefined,
	"text",
	{ type: "txet", delta: "a" },
	{ type: "text" },
	{ type: "text", delta: 1 },
	{ type: "tool", callId: "c", name: "n", status: "done" },
	{ type: "tool", name: "n", status: "started" },
	{ type: "part", modality: "text", contentType: "text/plain", payload: "second lane" },
	{ type: "part", modality: "card", contentType: "", payload: "x" },
	{ type: "part", modality: "card", contentType: "a/b", payload: {} },
	{ type: "compaction" },
])("an invalid event is refused with what to yield: %j", (event) => {
	expect(() => frame([event as EngineEvent])).toThrow(
		expect.objectContaining({ code: "engine_failed", message: expect.stringContaining("not an EngineEvent") }),
	);
});
