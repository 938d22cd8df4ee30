import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
	createToEvents,
	createVerifier,
	decodeFrame,
	encodeFrame,
	type Frame,
	type StreamEvent,
	type ToolStatusEvent,
} from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { anyJson, anyText, runLog } from "./arbitrary.ts";
import { createToFrames } from "./to-frames.ts";

const RUN = "run_0";
const toFrames = (events: StreamEvent[]): Frame[] => {
	let time = 0;
	const mapping = createToFrames({ runId: RUN, session: "main", now: () => ++time });
	return events.flatMap((event) => mapping.push(event));
};
const toEvents = (frames: Frame[]): StreamEvent[] => {
	const mapping = createToEvents();
	return frames.flatMap((frame) => mapping.push(frame) ?? []);
};

const text = anyText.filter((piece) => piece !== "");
const toolStatus: fc.Arbitrary<ToolStatusEvent> = fc.record(
	{
		type: fc.constant("tool_status" as const),
		toolName: anyText,
		toolCallId: fc.constantFrom("c1", "c2", "c3"),
		status: fc.constantFrom("started" as const, "progress" as const, "completed" as const, "failed" as const),
		summary: anyText,
		args: anyJson,
		result: anyJson,
	},
	{ requiredKeys: ["type", "toolName", "toolCallId", "status"] },
);
/** Half of the runs have one agent without a name. */
const agent = fc.constantFrom(undefined, undefined, "lead", "writer", "\ud83d");
const by = <T extends object>(event: T, who: string | undefined): T =>
	who === undefined ? event : { ...event, agent: who };
const body: fc.Arbitrary<StreamEvent[]> = fc.array(
	fc
		.tuple(
			fc.oneof(
				text.map((piece): StreamEvent => ({ type: "token", text: piece })),
				text.map((piece): StreamEvent => ({ type: "reasoning", text: piece })),
				toolStatus,
				fc.constant<StreamEvent>({ type: "stream_end", runId: RUN, final: false }),
			),
			agent,
		)
		.map(([event, who]) => by(event, who)),
);
const start = fc
	.tuple(anyJson, agent)
	.map(([target, who]): StreamEvent => by({ type: "stream_start", runId: RUN, sessionLabel: "main", target }, who));
const named = (event: StreamEvent): string | undefined => ("agent" in event ? event.agent : undefined);

/** The agents whose messages are open after these events, in order of begin, and whether the last begun is. */
function openAfter(events: readonly StreamEvent[]): { open: (string | undefined)[]; newestIsOpen: boolean } {
	const open = new Set<string | undefined>();
	let newest: string | undefined;
	for (const event of events) {
		const who = named(event);
		if (!open.has(who)) newest = who;
		open.add(who);
		if (event.type === "stream_end") open.delete(who);
	}
	return { open: [...open], newestIsOpen: open.has(newest) && [...open].at(-1) === newest };
}

/** The events of a run: one start, any others, then one end or one error that says whether text arrived. */
const run: fc.Arbitrary<StreamEvent[]> = fc
	.tuple(start, body, fc.option(anyText))
	.map(([first, middle, error]): StreamEvent[] => {
		const partial = middle.some((event) => event.type === "token");
		const { open, newestIsOpen } = openAfter([first, ...middle]);
		const last = newestIsOpen ? open.pop() : undefined;
		const ends = open.map((who): StreamEvent => by({ type: "stream_end", runId: RUN, final: false }, who));
		const terminal: StreamEvent =
			error === null
				? by({ type: "stream_end", runId: RUN, final: true }, last)
				: { type: "stream_error", error, partial };
		return [first, ...middle, ...ends, terminal];
	});

describe("P2.1: StreamEvents and frames say the same", () => {
	test("events → frames → events is the identity, also through the wire", () => {
		fc.assert(
			fc.property(run, (events) => {
				const frames = toFrames(events);
				expect(toEvents(frames)).toEqual(events);
				expect(toEvents(frames.map((frame) => decodeFrame(encodeFrame(frame))))).toEqual(events);
			}),
			{ numRuns: atEffort(300, 100) },
		);
	});

	test("I2, I3: the frames of any run are a valid log", () => {
		fc.assert(
			fc.property(run, (events) => {
				const verifier = createVerifier();
				for (const frame of toFrames(events)) expect(verifier.push(frame)).toBeUndefined();
				expect(verifier.finish()).toBeUndefined();
			}),
			{ numRuns: atEffort(300, 100) },
		);
	});

	test("P2.2: any log gives one start, first, and one terminal, last", () => {
		fc.assert(
			fc.property(runLog, (frames) => {
				const events = toEvents(frames);
				const types = events.map((event) => event.type);
				expect(types.filter((type) => type === "stream_start")).toHaveLength(1);
				expect(types[0]).toBe("stream_start");
				expect(events.at(-1)).toMatchObject({ type: "stream_end", final: true });
				expect(events.filter((event) => event.type === "stream_end" && event.final)).toHaveLength(1);
			}),
		);
	});
});

const started: StreamEvent = { type: "stream_start", runId: RUN, sessionLabel: "main", target: { to: "channel:1" } };
const finished: StreamEvent = { type: "stream_end", runId: RUN, final: true };
const shapeOf = (frames: Frame[]): string[] =>
	frames.map((frame) => {
		const id = frame.message_id.slice(RUN.length);
		if (frame.type === "stream.begin") return `begin${id} ${frame.modality}`;
		if (frame.type === "stream.chunk") return `chunk${id}`;
		return `end${id} ${frame.reason}${frame.final ? " final" : ""}`;
	});

test("P1.16, P2.3: the shape of a run's log", () => {
	const tool: ToolStatusEvent = { type: "tool_status", toolName: "read", toolCallId: "c1", status: "started" };
	const frames = toFrames([
		started,
		{ type: "reasoning", text: "a" },
		{ type: "reasoning", text: "b" },
		{ type: "token", text: "Let me look." },
		{ type: "reasoning", text: "c" },
		tool,
		{ ...tool, toolCallId: "c2" },
		{ ...tool, status: "completed", summary: "Read it" },
		{ type: "stream_end", runId: RUN, final: false },
		{ type: "token", text: "Found." },
		{ type: "reasoning", text: "d" },
		finished,
	]);
	expect(shapeOf(frames)).toEqual([
		"begin.1 text",
		"begin.2 reasoning",
		"chunk.2",
		"chunk.2",
		"end.2 completed",
		"chunk.1",
		"begin.3 reasoning",
		"chunk.3",
		"end.3 completed",
		"begin.4 tool",
		"chunk.4",
		"begin.5 tool",
		"chunk.5",
		"chunk.4",
		"end.4 completed",
		"end.1 completed",
		"begin.6 text",
		"chunk.6",
		"begin.7 reasoning",
		"chunk.7",
		"end.5 completed",
		"end.7 completed",
		"end.6 completed final",
	]);
	expect(frames[0]).toMatchObject({ session: "main", target: { to: "channel:1" }, content_type: "text/markdown" });
});

describe("P2.4: how a run ended", () => {
	const ending = (reason: string, more = {}): StreamEvent | undefined => {
		const events = toEvents([
			...toFrames([started, { type: "token", text: "a" }]),
			{
				type: "stream.end",
				message_id: `${RUN}.1`,
				total_chunks: 1,
				checksum: "crc32:e8b7be43",
				final: true,
				reason,
				ts: 1,
				...more,
			} as Frame,
		]);
		return events.at(-1);
	};
	test("completed and aborted are a stream_end", () => {
		for (const reason of ["completed", "aborted"]) expect(ending(reason)).toEqual(finished);
	});
	test("error, timeout and crashed are a stream_error that says what happened", () => {
		for (const reason of ["error", "timeout", "crashed"]) {
			const error = { code: "engine_failed", message: "boom" };
			expect(ending(reason, { error })).toEqual({ type: "stream_error", error: "boom", partial: true });
			expect(ending(reason)).toEqual({ type: "stream_error", error: reason, partial: true });
		}
	});
	test("P2.5: a stream_end without `final` is final", () => {
		expect(shapeOf(toFrames([started, { type: "stream_end", runId: RUN }]))).toEqual([
			"begin.1 text",
			"end.1 completed final",
		]);
	});
});

describe("P3.10: words that are not visible", () => {
	const frames = toFrames([started, { type: "token", text: "secret" }, { type: "reasoning", text: "hm" }, finished]);
	const hidden = frames.map((frame) => (frame.type === "stream.begin" ? { ...frame, visible: false } : frame));
	test("reach no platform, but the run begins and ends", () => {
		expect(toEvents(hidden)).toEqual([started, finished]);
	});
	test("do not count as partial text when the run fails", () => {
		const failed = hidden.map((frame) =>
			frame.type === "stream.end" && frame.final ? { ...frame, reason: "error" as const } : frame,
		);
		expect(toEvents(failed).at(-1)).toMatchObject({ type: "stream_error", partial: false });
	});
});

test("P2.2: a message that the run's failure cut short is not the run's end", () => {
	const frames = toFrames([
		started,
		{ type: "token", text: "a", agent: "x" },
		{ type: "stream_error", error: "boom", partial: true },
	]);
	expect(toEvents(frames).slice(-2)).toEqual([
		{ type: "stream_end", runId: RUN, final: false },
		{ type: "stream_error", error: "boom", partial: true },
	]);
});

test("P2.6: a tool payload other than tool_status is not an event", () => {
	const frames = toFrames([started, { type: "tool_status", toolName: "t", toolCallId: "c", status: "started" }]);
	for (const payload of [
		"null",
		"1",
		"{",
		"{}",
		'{"type":"tool_status","toolName":"t","toolCallId":"c","status":"odd"}',
	]) {
		const broken = frames.map((frame) => (frame.type === "stream.chunk" ? { ...frame, payload } : frame));
		expect(toEvents(broken)).toEqual([started]);
	}
});

test("P1.8: an empty token or reasoning delta makes no chunk", () => {
	expect(shapeOf(toFrames([started, { type: "token", text: "" }, { type: "reasoning", text: "" }]))).toEqual([
		"begin.1 text",
	]);
});

describe("P2.7: an event that cannot stand where it does is refused", () => {
	const cases: [string, StreamEvent[], RegExp][] = [
		["before the start", [{ type: "token", text: "a" }], /token before stream_start/],
		["a second start", [started, started], /second stream_start/],
		["a foreign run", [{ ...started, runId: "run_1" } as StreamEvent], /run_1 in run run_0/],
		["after the end", [started, finished, { type: "token", text: "a" }], /token after the end/],
	];
	test.each(cases)("%s", (_, events, message) => {
		expect(() => toFrames(events)).toThrow(message);
	});
});
