import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
	checksumOf,
	crc32,
	createFold,
	decodeFrame,
	type EndFrame,
	encodeFrame,
	type Frame,
	type RunView,
	shownOf,
} from "../../packages/protocol/src/protocol.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { runLog, textId } from "./arbitrary.ts";

function fold(frames: Frame[]): RunView {
	const folded = createFold();
	for (const frame of frames) folded.push(frame);
	return folded.view();
}

const payloadsOf = (frames: Frame[], id: string): string[] =>
	frames.flatMap((frame) => (frame.type === "stream.chunk" && frame.message_id === id ? [frame.payload] : []));

describe("P3.2: the fold of a replay is the fold of the live run", () => {
	test("whenever it is looked at, and through the wire", () => {
		fc.assert(
			fc.property(runLog, fc.array(fc.boolean(), { minLength: 1 }), (frames, looks) => {
				const live = createFold();
				frames.forEach((frame, at) => {
					live.push(frame);
					if (looks[at % looks.length]) live.view();
				});
				expect(live.view()).toEqual(fold(frames.map((frame) => decodeFrame(encodeFrame(frame)))));
			}),
		);
	});

	test("a snapshot never changes", () => {
		fc.assert(
			fc.property(runLog, (frames) => {
				const live = createFold();
				let before: RunView | undefined;
				let copy: RunView | undefined;
				for (const frame of frames) {
					live.push(frame);
					expect(before).toEqual(copy);
					before = live.view();
					copy = structuredClone(before);
				}
			}),
		);
	});

	test("messages that did not change are the same objects in the next snapshot", () => {
		const live = createFold();
		for (const frame of [begin("r.1", "text"), chunk("r.1", 1, "a"), begin("r.2", "text")]) live.push(frame);
		const before = live.view();
		expect(live.view()).toBe(before);
		live.push(chunk("r.2", 1, "b"));
		const after = live.view();
		expect(after.messages[0]).toBe(before.messages[0]);
		expect(after.messages[1]).toMatchObject({ text: "b" });
	});
});

/** Neighbours that belong to different streams change places; the order of begins and the final end stay. */
function reorder(frames: Frame[], swaps: number[]): Frame[] {
	const result = [...frames];
	for (const swap of swaps) {
		const at = swap % (result.length - 2 || 1);
		const [a, b] = [result[at], result[at + 1]];
		if (!a || !b || a.message_id === b.message_id || at + 1 === result.length - 1) continue;
		if (a.type === "stream.begin" && b.type === "stream.begin") continue;
		result.splice(at, 2, b, a);
	}
	return result;
}

/** Without the positions that P3.3 ties to the order of the log. */
const withoutLogOrder = (view: RunView): unknown =>
	structuredClone(view).messages.map((message) => {
		for (const block of [...message.reasoning, ...message.tools]) block.after = -1;
		return message;
	});

test("P3.3: how streams are interleaved does not change what is seen", () => {
	fc.assert(
		fc.property(runLog, fc.array(fc.nat(), { maxLength: 200 }), (frames, swaps) => {
			const other = fold(reorder(frames, swaps));
			expect(other.violations).toEqual([]);
			expect(withoutLogOrder(other)).toEqual(withoutLogOrder(fold(frames)));
		}),
		{ numRuns: atEffort(300, 100) },
	);
});

test("P3.1: the text of each message is its payloads, verified at its end", () => {
	fc.assert(
		fc.property(runLog, (frames) => {
			const view = fold(frames);
			expect(view).toMatchObject({ runId: "run_0", session: "s", final: true, state: "completed", violations: [] });
			view.messages.forEach((message, n) => {
				const text = payloadsOf(frames, textId(n)).join("");
				expect(message).toMatchObject({ messageId: textId(n), text, state: "completed", verified: true });
			});
		}),
	);
});

describe("P3.4: align", () => {
	test("a part is shown only once the text it is aligned to is, and stands right behind it", () => {
		fc.assert(
			fc.property(runLog, (frames) => {
				const live = createFold();
				frames.forEach((frame, at) => {
					live.push(frame);
					const seen = frames.slice(0, at + 1);
					for (const message of live.view().messages) {
						const texts = payloadsOf(seen, message.messageId);
						const ended = message.state !== "streaming";
						const places = message.parts.map((part) => part.after);
						expect(places).toEqual(places.toSorted((a, b) => a - b));
						for (const part of message.parts) {
							const { align } = frames.find(
								(other) =>
									other.type === "stream.chunk" && other.message_id === part.messageId && other.seq_no === part.seqNo,
							) as { align: { message_id: string; seq_no: number } };
							if (align.message_id !== message.messageId) expect(live.view().final).toBe(true);
							else expect(ended || texts.length >= align.seq_no).toBe(true);
							const before = align.message_id === message.messageId ? texts.slice(0, align.seq_no) : texts;
							expect(message.text.slice(0, part.after)).toBe(before.join(""));
						}
					}
				});
			}),
		);
	});

	test("no part is lost once the run has ended", () => {
		fc.assert(
			fc.property(runLog, (frames) => {
				const begins = new Map(
					frames.flatMap((frame) => (frame.type === "stream.begin" ? [[frame.message_id, frame]] : [])),
				);
				const owed = frames.flatMap((frame) =>
					frame.type === "stream.chunk" &&
					!["text", "reasoning", "tool"].includes(begins.get(frame.message_id)!.modality)
						? [frame.payload]
						: [],
				);
				const shown = fold(frames).messages.flatMap((message) => message.parts.map((part) => part.payload));
				expect(shown.join("").length).toBe(owed.join("").length);
			}),
		);
	});
});

const begin = (id: string, modality: string, more = {}): Frame => ({
	type: "stream.begin",
	message_id: id,
	run_id: "r",
	trace_id: "0".repeat(32),
	correlation_group: "r",
	modality,
	content_type: "text/plain",
	ts: 1,
	...more,
});
const chunk = (id: string, seq_no: number, payload: string, more = {}): Frame => ({
	type: "stream.chunk",
	message_id: id,
	seq_no,
	payload,
	is_partial: true,
	ts: 2,
	...more,
});
const end = (id: string, payloads: string[], more: Partial<EndFrame> = {}): Frame => ({
	type: "stream.end",
	message_id: id,
	total_chunks: payloads.length,
	checksum: checksumOf(payloads.reduce((crc, payload) => crc32(payload, crc), 0)),
	final: false,
	reason: "completed",
	ts: 3,
	...more,
});
const usage = { input: 3, output: 5 };
const status = (state: string, more = {}) =>
	JSON.stringify({ type: "tool_status", toolName: "read", toolCallId: "c1", status: state, ...more });

test("P3.3: what an agent thinks, does and shows stands in its own newest message", () => {
	const view = fold([
		begin("r.1", "text", { agent: "a" }),
		begin("r.2", "text", { agent: "b" }),
		begin("r.3", "reasoning", { agent: "a" }),
		chunk("r.3", 1, "hm"),
		chunk("r.2", 1, "B"),
		chunk("r.1", 1, "AA"),
		begin("r.4", "tool", { agent: "b" }),
		chunk("r.4", 1, status("started")),
		begin("r.5", "card", { agent: "a" }),
		chunk("r.5", 1, "{}", { is_partial: false, align: { message_id: "r.1", seq_no: 1 } }),
		begin("r.6", "reasoning", { agent: "nobody" }),
	]);
	expect(view.messages).toMatchObject([
		{ agent: "a", text: "AA", reasoning: [{ text: "hm" }], tools: [], parts: [{ after: 2 }] },
		{ agent: "b", text: "B", reasoning: [{ messageId: "r.6" }], tools: [{ callId: "c1", after: 1 }], parts: [] },
	]);
});

describe("P3.10: hidden words", () => {
	const hidden = { agent: "lead", visible: false };
	const frames = [
		begin("r.1", "text", hidden),
		begin("r.2", "reasoning", hidden),
		chunk("r.2", 1, "hm"),
		chunk("r.1", 1, "secret", { ts: 5 }),
		begin("r.3", "tool", { agent: "lead" }),
		chunk("r.3", 1, status("completed")),
		begin("r.4", "text", { agent: "writer" }),
		chunk("r.4", 1, "Hello", { ts: 9 }),
	];
	test("are in the fold, marked, and not the first text", () => {
		const view = fold(frames);
		expect(view).toMatchObject({ firstTextAt: 9, messages: [{ text: "secret", visible: false }, { text: "Hello" }] });
		expect(view.messages[1]).not.toHaveProperty("visible");
	});
	test("are not shown to people who chat; what was done with tools is", () => {
		const live = createFold();
		for (const frame of frames) live.push(frame);
		const shown = shownOf(live.view());
		expect(shown.messages).toMatchObject([
			{ agent: "lead", text: "", reasoning: [], tools: [{ after: 0 }] },
			{ text: "Hello" },
		]);
		live.push(chunk("r.4", 2, "!"));
		expect(shownOf(live.view()).messages[0]).toBe(shown.messages[0]);
		expect(JSON.stringify(shown)).not.toMatch(/secret|hm/);
		const silent = fold([...frames.slice(0, 4), ...frames.slice(6)]);
		expect(shownOf(silent).messages).toMatchObject([{ text: "Hello" }]);
	});
	test("a run without any is shown as it is", () => {
		fc.assert(
			fc.property(runLog, (log) => {
				const view = fold(log);
				const isPlain = view.messages.every(({ visible }) => visible !== false);
				expect(shownOf(view) === view).toBe(isPlain);
			}),
		);
	});
});

test("P3.1, P3.6: a run with everything in it, as a person sees it", () => {
	const started = status("started", { args: { path: "a" } });
	const done = status("completed", { summary: "Read a", result: "x" });
	const view = fold([
		begin("r.1", "text"),
		begin("r.2", "reasoning"),
		chunk("r.2", 1, "hm"),
		end("r.2", ["hm"]),
		chunk("r.1", 1, "Hello"),
		begin("r.3", "tool"),
		chunk("r.3", 1, started, { is_partial: false }),
		chunk("r.3", 2, done, { is_partial: false, ts: 9 }),
		end("r.3", [started, done], { ts: 10 }),
		begin("r.4", "card", { content_type: "application/json" }),
		chunk("r.4", 1, "{}", { is_partial: false, align: { message_id: "r.1", seq_no: 2 } }),
		chunk("r.1", 2, " world"),
		chunk("r.1", 3, "!"),
		end("r.4", ["{}"]),
		end("r.1", ["Hello", " world", "!"], { final: true, usage }),
	]);
	expect(view).toEqual({
		runId: "r",
		messages: [
			{
				messageId: "r.1",
				contentType: "text/plain",
				text: "Hello world!",
				state: "completed",
				verified: true,
				reasoning: [{ messageId: "r.2", text: "hm", state: "completed", after: 0, startedAt: 1, endedAt: 3 }],
				tools: [
					{
						messageId: "r.3",
						callId: "c1",
						name: "read",
						status: "completed",
						summary: "Read a",
						args: { path: "a" },
						result: "x",
						after: 5,
						startedAt: 2,
						endedAt: 9,
					},
				],
				parts: [
					{
						messageId: "r.4",
						seqNo: 1,
						modality: "card",
						contentType: "application/json",
						payload: "{}",
						complete: true,
						after: 11,
					},
				],
				startedAt: 1,
				endedAt: 3,
			},
		],
		compacting: false,
		state: "completed",
		final: true,
		usage,
		startedAt: 1,
		firstTextAt: 2,
		endedAt: 3,
		violations: [],
	});
});

test("P3.6: a tool call without an outcome has failed when its stream ends", () => {
	const started = status("started");
	const frames = [begin("r.1", "text"), begin("r.2", "tool"), chunk("r.2", 1, started)];
	expect(fold(frames).messages[0]!.tools[0]).toMatchObject({ status: "started" });
	const tool = fold([...frames, end("r.2", [started], { reason: "crashed", ts: 7 })]).messages[0]!.tools[0];
	expect(tool).toMatchObject({ status: "failed", endedAt: 7 });
});

test("P3.5: chunks of a value join into one part; an invalid tool payload and an unknown modality are kept as parts", () => {
	const view = fold([
		begin("r.1", "text"),
		begin("r.2", "audio"),
		chunk("r.2", 1, "QUJ", { align: { message_id: "r.9", seq_no: 1 } }),
		begin("r.3", "hologram"),
		chunk("r.2", 2, "D", { is_partial: false }),
		chunk("r.3", 1, "ghost", { is_partial: false, content_type: "x/y" }),
		begin("r.4", "tool"),
		chunk("r.4", 1, "not json", { is_partial: false }),
	]);
	expect(view.messages[0]!.parts).toMatchObject([
		{ modality: "hologram", payload: "ghost", contentType: "x/y", complete: true },
		{ modality: "tool", payload: "not json" },
	]);
	const final = fold([
		begin("r.2", "audio"),
		chunk("r.2", 1, "QUJ", { align: { message_id: "r.9", seq_no: 1 } }),
		chunk("r.2", 2, "D", { is_partial: false }),
		end("r.2", ["QUJ", "D"]),
		begin("r.1", "text"),
		end("r.1", [], { final: true, usage }),
	]);
	expect(final.messages).toHaveLength(1);
	expect(final.messages[0]).toMatchObject({ messageId: "r.1", parts: [{ payload: "QUJD", complete: true, after: 0 }] });
});

test("P3.7: compaction is a state of the run, over at the latest when the run is", () => {
	const payload = '{"compaction":"start"}';
	const frames = [begin("r.1", "text"), begin("r.2", "data"), chunk("r.2", 1, payload, { is_partial: false })];
	expect(fold(frames)).toMatchObject({ compacting: true, messages: [{ parts: [] }] });
	expect(fold([...frames, chunk("r.2", 2, '{"compaction":"end"}')]).compacting).toBe(false);
	const ended = [end("r.2", [payload]), end("r.1", [], { final: true, usage, reason: "timeout", synthetic: true })];
	expect(fold([...frames, ...ended])).toMatchObject({ compacting: false, state: "timeout", synthetic: true });
});

test("P3.8: a damaged run is shown as far as it goes, and not as verified", () => {
	const error = { code: "engine_failed", message: "boom" };
	const view = fold([
		begin("r.1", "text"),
		chunk("r.1", 1, "a"),
		chunk("r.1", 1, "a"),
		chunk("r.7", 1, "who?"),
		chunk("r.1", 3, "c"),
		end("r.1", ["a", "b", "c"], { final: true, usage, reason: "error", error }),
		chunk("r.1", 4, "late"),
	]);
	expect(view).toMatchObject({ state: "error", error, final: true });
	expect(view.messages).toMatchObject([{ text: "ac", verified: false, state: "error" }]);
	expect(view.violations.map(({ kind }) => kind)).toEqual([
		"duplicate",
		"chunk_before_begin",
		"gap",
		"wrong_checksum",
		"chunk_after_end",
	]);
});

test("P3.8: a flood of violations is kept only in part", () => {
	const folded = createFold();
	for (let n = 1; n <= 1000; n++) folded.push(chunk("r.1", n, "x"));
	expect(folded.view().violations).toHaveLength(100);
});

test.skipIf(effort < FULL_EFFORT)("P3.9: the cost of a chunk does not grow with the text before it", () => {
	/** Milliseconds of this thread's own work: how long it waits for its turn says nothing. */
	const timeOf = (chunks: number): number => {
		const folded = createFold();
		folded.push(begin("r.1", "text"));
		const start = process.threadCpuUsage();
		for (let n = 1; n <= chunks; n++) {
			folded.push(chunk("r.1", n, "token "));
			if (n % 100 === 0) folded.view();
		}
		const { user, system } = process.threadCpuUsage(start);
		return (user + system) / 1000;
	};
	const bestOf = (chunks: number): number => Math.min(timeOf(chunks), timeOf(chunks), timeOf(chunks));
	bestOf(20_000);
	// Quadratic work would take 100 times as long for 10 times as many; linear work takes 10 times.
	expect(bestOf(200_000) / Math.max(bestOf(20_000), 1)).toBeLessThan(50);
});
