/** Several agents in one run: whatever they yield side by side, each has its own message, and the turn is what the frames show (A7, A8). */

import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pastTurnOf } from "../../packages/daemon/src/broker/context.ts";
import { ABORTED, COMPLETED, CRASHED, type Ending } from "../../packages/daemon/src/broker/ending.ts";
import { Framer } from "../../packages/daemon/src/broker/frames/framer.ts";
import { Transcript } from "../../packages/daemon/src/broker/frames/transcript.ts";
import { BROKER_LIMITS } from "../../packages/daemon/src/broker/port.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import {
	type BeginFrame,
	createFold,
	decodeFrame,
	type Frame,
	type RunView,
} from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { ask, finalEnd, gate, request, rig, tempFile, turnWhenSettled, until, verified } from "./rig.ts";

const options = { runId: "run_1", session: "main", chunkBytesMax: 64, toolJsonCharsMax: 1000 };

/** The frames and the turn of a run that yields these events. */
function play(
	events: readonly EngineEvent[],
	ending: Ending = COMPLETED,
	whole = false,
): { frames: Frame[]; turn: Turn } {
	const framer = new Framer({ ...options, whole });
	const limits = { ...BROKER_LIMITS, reasoningCharsMax: 10_000 };
	const transcript = new Transcript({ ...options, ...limits, engine: "played", startedAt: 0, userMessages: [] });
	const frames: Frame[] = [];
	const sink = (record: string) => void frames.push(decodeFrame(record));
	framer.streams.attach(sink);
	framer.open(1);
	for (const event of events) transcript.take(framer.take(event, 1), framer.text, 1);
	const turn = transcript.turn(ending, 2);
	framer.end(ending, turn.usage, 2, turn.usageBy);
	return { frames, turn };
}

const text = (agent: string | undefined, delta: string): EngineEvent => ({ type: "text", delta, ...by(agent) });
const by = (agent: string | undefined) => (agent === undefined ? {} : { agent });
const message = (agent: string, visible = true): EngineEvent => ({ type: "message", agent, visible });

const agents = fc.constantFrom(undefined, "lead", "writer", "critic");
const words = fc.string({ unit: "grapheme", maxLength: 30 });
const anyEvent: fc.Arbitrary<EngineEvent> = fc
	.tuple(
		agents,
		fc.oneof(
			{ weight: 6, arbitrary: words.map((delta): EngineEvent => ({ type: "text", delta })) },
			{ weight: 2, arbitrary: words.map((delta): EngineEvent => ({ type: "reasoning", delta })) },
			{ weight: 2, arbitrary: fc.boolean().map((visible): EngineEvent => ({ type: "message", visible })) },
			{ weight: 1, arbitrary: fc.constant<EngineEvent>({ type: "message_end" }) },
			fc
				.tuple(fc.nat({ max: 3 }), fc.constantFrom("started" as const, "progress" as const, "completed" as const))
				.map(([n, status]): EngineEvent => ({ type: "tool", callId: `c${n}`, name: "look", status })),
			words.map((payload): EngineEvent => ({ type: "part", modality: "card", contentType: "text/plain", payload })),
			fc.nat({ max: 9 }).map((input): EngineEvent => ({ type: "usage", input, output: 1 })),
		),
	)
	.map(([agent, event]) => named(event, agent));

/** Calls are unique in the run: an agent has its own. */
const named = (event: EngineEvent, agent: string | undefined): EngineEvent => ({
	...event,
	...by(agent),
	...(event.type === "tool" && { callId: `${agent}.${event.callId}` }),
});

const anyEvents = fc.array(anyEvent, { maxLength: 60 });
const anyEnding = fc.constantFrom<Ending>(COMPLETED, ABORTED, CRASHED, { reason: "error" });
const many = { numRuns: atEffort(1000, 200) };

const fold = (frames: readonly Frame[]): RunView => {
	const folded = createFold();
	for (const frame of frames) folded.push(frame);
	return folded.view();
};
const begins = (frames: readonly Frame[]) => frames.filter((f): f is BeginFrame => f.type === "stream.begin");

/** The facts that a turn and a fold share. */
const ofTurn = ({ messages, toolCalls }: Turn) => ({
	messages: messages.map(({ messageId, agent, visible, text: said, reasoning = "", parts = [] }) => ({
		messageId,
		agent,
		visible,
		text: said,
		reasoning,
		parts: parts.map(({ payload, after }) => [payload, after]),
	})),
	calls: toolCalls.map(({ callId, agent, message: index, after }) => [
		callId,
		agent,
		messages[index]?.messageId,
		after,
	]),
});
const ofFold = ({ messages }: RunView, kept: ReadonlySet<string | undefined>) => ({
	messages: messages
		.filter(({ messageId }) => kept.has(messageId))
		.map(({ messageId, agent, visible, text: said, reasoning, parts }) => ({
			messageId,
			agent,
			visible,
			text: said,
			reasoning: reasoning.map((passage) => passage.text).join(""),
			parts: parts.map(({ payload, after }) => [payload, after]),
		})),
	calls: messages
		.flatMap(({ messageId, agent, tools }) => tools.map((tool) => ({ tool, messageId, agent })))
		.sort((one, other) => Number(one.tool.messageId.split(".")[1]) - Number(other.tool.messageId.split(".")[1]))
		.map(({ tool, messageId, agent }) => [tool.callId, agent, messageId, tool.after]),
});

describe("for all interleavings of agents", () => {
	test("I2, I3: the log is well-framed, and ends with the end of the message that was begun last", () => {
		fc.assert(
			fc.property(anyEvents, anyEnding, fc.boolean(), (events, ending, whole) => {
				const { frames } = play(events, ending, whole);
				expect(verified(frames)).toBeUndefined();
				const last = begins(frames).findLast(({ modality }) => modality === "text");
				expect(finalEnd(frames)).toMatchObject({ message_id: last!.message_id, reason: ending.reason });
			}),
			many,
		);
	});

	test("P1.16: the message that was begun last is open until the next begins, and never are two of one agent", () => {
		fc.assert(
			fc.property(anyEvents, (events) => {
				const { frames } = play(events);
				const open = new Map<string, string | undefined>();
				let newest = "";
				frames.forEach((frame, at) => {
					if (frame.type === "stream.begin" && frame.modality === "text") {
						expect([...open.values()]).not.toContain(frame.agent);
						open.set(frame.message_id, frame.agent);
						newest = frame.message_id;
					}
					if (frame.type === "stream.end") open.delete(frame.message_id);
					const next = frames[at + 1];
					if (!open.has(newest) && next && next.type !== "stream.end")
						expect(next).toMatchObject({ type: "stream.begin", modality: "text" });
				});
			}),
			many,
		);
	});

	test("every agent's words and thoughts are whole, in order, and under its name", () => {
		fc.assert(
			fc.property(anyEvents, fc.boolean(), (events, whole) => {
				const { frames } = play(events, COMPLETED, whole);
				for (const lane of ["text", "reasoning"] as const)
					for (const agent of [undefined, "lead", "writer", "critic"]) {
						const ids = begins(frames).filter((begin) => begin.modality === lane && begin.agent === agent);
						const own = new Set(ids.map((begin) => begin.message_id));
						const said = frames.flatMap((f) => (f.type === "stream.chunk" && own.has(f.message_id) ? [f.payload] : []));
						const yielded = events.flatMap((e) => (e.type === lane && e.agent === agent ? [e.delta] : []));
						expect(said.join("")).toBe(yielded.join(""));
					}
			}),
			many,
		);
	});

	test("the turn is the fold of the frames", () => {
		fc.assert(
			fc.property(anyEvents, anyEnding, (events, ending) => {
				const { frames, turn } = play(events, ending);
				const kept = new Set(turn.messages.map(({ messageId }) => messageId));
				expect(ofTurn(turn)).toEqual(ofFold(fold(frames), kept));
				// Messages with text, reasoning, parts or calls are kept.
				for (const { messageId, text: said, tools, parts } of fold(frames).messages)
					if (said !== "" || tools.length > 0 || parts.length > 0) expect(kept).toContain(messageId);
				const { usage, usageBy } = fold(frames);
				expect({ usage, usageBy }).toEqual({ usage: turn.usage, usageBy: turn.usageBy });
			}),
			many,
		);
	});

	test("I3, I4: recovery from any record ends every open message and keeps the text so far", () => {
		fc.assert(
			fc.property(anyEvents, fc.nat(), (events, at) => {
				const { frames } = play(events);
				const left = frames.slice(0, 1 + (at % frames.length));
				if (left.length === frames.length) return;
				const framer = new Framer(options);
				for (const frame of left) framer.streams.replay(frame);
				const rest = framer.streams.collect(() => framer.end(CRASHED, { input: -1, output: -1 }, 2)).map(decodeFrame);
				const taken = [...left, ...rest];
				expect(verified(taken)).toBeUndefined();
				const texts = ({ messages }: RunView) => messages.map(({ messageId, text: said }) => [messageId, said]);
				const known = texts(fold(left));
				expect(texts(fold(taken)).slice(0, known.length)).toEqual(known);
			}),
			many,
		);
	});

	test("P3.10: hidden words, thoughts and parts are marked in their begin, and tools are not", () => {
		fc.assert(
			fc.property(anyEvents, (events) => {
				const { frames } = play(events);
				const { messages } = fold(frames);
				for (const { messageId, modality, visible } of begins(frames).map((b) => ({ ...b, messageId: b.message_id }))) {
					const owner = messages.find(
						({ messageId: id, reasoning, parts, tools }) =>
							id === messageId || [...reasoning, ...parts, ...tools].some((block) => block.messageId === messageId),
					);
					expect(visible).toBe(modality === "tool" ? undefined : owner?.visible);
				}
			}),
			many,
		);
	});
});

const shape = (frames: readonly Frame[]) =>
	frames.map((f) => {
		const n = f.message_id.replace("run_1.", "");
		if (f.type === "stream.begin")
			return `${n} begin ${[f.agent, f.modality, f.visible].filter((x) => x !== undefined).join(" ")}`;
		if (f.type === "stream.chunk") return `${n} ${f.payload}`;
		return `${n} end${f.final ? " final" : ""}`;
	});

describe("messages", () => {
	test("A7: agents side by side have one open message each, and one that has finished says so", () => {
		const { frames } = play([
			...[message("a"), message("b"), text("a", "1"), text("b", "2"), text("a", "3")],
			...[{ type: "message_end", agent: "a" } as const, text("b", "4"), { type: "message_end", agent: "b" } as const],
			...[message("c"), text("c", "5")],
		]);
		expect(shape(frames)).toEqual([
			...["1 begin text", "1 end", "2 begin a text", "3 begin b text", "2 1", "3 2", "2 3", "2 end"],
			...["3 4", "3 end", "4 begin c text", "4 5", "4 end final"],
		]);
	});

	test("the message begun last stays open after its end was said: its end may be the run's", () => {
		const { frames } = play([message("a"), text("a", "1"), { type: "message_end", agent: "a" }]);
		expect(shape(frames).slice(2)).toEqual(["2 begin a text", "2 1", "2 end final"]);
	});

	test("what an agent says after the end of its message begins another, as hidden as the last", () => {
		const end: EngineEvent = { type: "message_end", agent: "a" };
		const { frames } = play([message("a", false), text("a", "1"), end, text("a", "2")]);
		expect(shape(frames).slice(2)).toEqual([
			...["2 begin a text false", "2 1", "2 end", "3 begin a text false", "3 2", "3 end final"],
		]);
	});

	test("a tool that outlives its message opens no other", () => {
		const tool = { type: "tool", callId: "c", name: "look", agent: "a" } as const;
		const { frames, turn } = play([
			...[message("a"), { ...tool, status: "started" as const }, message("b")],
			...[{ type: "message_end", agent: "a" } as const, { ...tool, status: "completed" as const }, text("b", "x")],
		]);
		expect(begins(frames).map(({ modality, agent }) => [modality, agent])).toEqual([
			...[
				["text", undefined],
				["text", "a"],
				["tool", "a"],
				["text", "b"],
			],
		]);
		expect(turn.toolCalls).toMatchObject([{ agent: "a", status: "completed", message: 0 }]);
		expect(turn.messages).toMatchObject([
			{ agent: "a", text: "" },
			{ agent: "b", text: "x" },
		]);
	});

	test("an end tells the model that wrote the message, and the phase", () => {
		const { frames } = play([
			...[message("a"), text("a", "1"), { type: "usage", input: 1, output: 2, agent: "a", model: "small" } as const],
			...[{ type: "phase", name: "plan", because: "asked" } as const, message("a"), text("a", "2")],
		]);
		const ends = frames.filter((f) => f.type === "stream.end").slice(1);
		expect(ends).toMatchObject([
			{ model: "small", phase: "plan" },
			{ model: "small", phase: "plan", final: true },
		]);
	});

	test("A7: usage is reported per agent and model in addition to the sum, unless no agent was named", () => {
		const usage = (more: object): EngineEvent => ({ type: "usage", input: 2, output: -1, ...more });
		const { turn, frames } = play([
			...[usage({ agent: "a", model: "m" }), usage({ agent: "b", output: 3 }), usage({ agent: "a", model: "m" })],
		]);
		const shares = [
			{ agent: "a", model: "m", usage: { input: 4, output: -1 } },
			{ agent: "b", usage: { input: 2, output: 3 } },
		];
		expect(turn).toMatchObject({ usage: { input: 6, output: 3 }, usageBy: shares });
		expect(finalEnd(frames).usage_by).toEqual(shares);
		expect(play([usage({})]).turn).not.toHaveProperty("usageBy");
	});

	test.each([
		["an invalid name", { type: "text", delta: "x", agent: 5 }],
		["an empty name", { type: "message", agent: "" }],
		["a name too long", { type: "text", delta: "x", agent: "a".repeat(201) }],
		["an invalid visibility", { type: "message", visible: "no" }],
		["a phase without a name", { type: "phase", because: "x" }],
	])("%s is refused", (_, event) => {
		expect(() => play([event as EngineEvent])).toThrow(/not an EngineEvent/);
	});

	test("I11: agents of one run have a limit", () => {
		const crowd = Array.from({ length: 300 }, (_, n) => text(`agent ${n}`, "x"));
		expect(() => play(crowd)).toThrow(/more than 256 agents/);
	});
});

describe("a later turn", () => {
	const events: EngineEvent[] = [
		...[
			message("lead", false),
			text("lead", "secret plan"),
			{ type: "reasoning", delta: "hm", agent: "lead" } as const,
		],
		{ type: "signed_reasoning", text: "t", signature: "s", agent: "lead" },
		{ type: "tool", callId: "r", name: "route", status: "completed", agent: "lead" },
		...[message("writer"), text("writer", "Hello.")],
	];

	test("A20: names the agent of each text, and has only the tools of hidden text", () => {
		const { messages } = pastTurnOf(play(events).turn);
		expect(messages).toEqual([
			{ role: "assistant", text: "", agent: "lead", toolCalls: [expect.objectContaining({ name: "route" })] },
			{ role: "assistant", text: "Hello.", agent: "writer" },
		]);
	});

	test("through the ledger, too, and the turn keeps them marked", async () => {
		const asked: EngineRequest[] = [];
		const { broker, ledger } = rig(async function* (approvals) {
			asked.push(approvals);
			yield* asked.length === 1 ? events : [text(undefined, "again")];
		});
		await broker.execute(request()).result;
		await broker.execute(request({ runId: "run_2" })).result;
		expect(asked[1]!.messages.slice(1, -1)).toMatchObject([
			{ agent: "lead", text: "", toolCalls: [{ name: "route" }] },
			{ agent: "writer", text: "Hello." },
		]);
		expect(JSON.stringify(asked[1]!.messages)).not.toContain("secret");
		expect((await ledger.turns.get("run_1"))?.messages.slice(1)).toMatchObject([
			{ agent: "lead", visible: false, text: "secret plan" },
			{ agent: "writer", text: "Hello." },
		]);
	});
});

test("I3, I5: a run of agents that a dead process left is settled with every agent's words", async () => {
	const path = tempFile();
	const { opened } = gate();
	const first = rig(
		async function* () {
			yield [message("lead", false), text("lead", "plan"), message("a"), message("b")];
			yield [
				text("b", "two"),
				text("a", "one "),
				{ type: "tool", callId: "c", name: "look", status: "started", agent: "b" },
			];
			yield text("a", "more");
			await opened;
		},
		{ path, dies: true },
	);
	const { runId } = await ask(first.broker, "main", "question");
	await until(async () => JSON.stringify(await first.frames(runId)).includes("more"));
	const second = rig(async function* () {}, { path });
	await second.broker.recover();
	const turn = await turnWhenSettled(second.look, runId);
	expect(turn).toMatchObject({
		status: "failed",
		messages: [
			{ role: "user" },
			{ agent: "lead", visible: false, text: "plan" },
			{ agent: "a", text: "one more" },
			{ agent: "b", text: "two" },
		],
		toolCalls: [{ agent: "b", message: 3, status: "failed" }],
	});
	expect(verified(await second.frames(runId))).toBeUndefined();
});
