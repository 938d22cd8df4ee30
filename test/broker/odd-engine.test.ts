/** Engines from user modules: whatever they do, the run ends, its log is well-framed and its turn is saved at once. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { follow } from "../../packages/daemon/src/bus/bus.ts";
import { createFold } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import {
	finalEnd,
	never,
	type Play,
	request,
	rig,
	tempFile,
	text,
	until,
	verified,
	yields,
	yieldsThenWaits,
} from "./rig.ts";

const tool = (fields: object) => ({ type: "tool", callId: "c1", name: "look", ...fields }) as EngineEvent;

/** The turn as it comes out of the ledger, after the run's log was found in order. */
async function played(play: Play, limits = {}) {
	const { broker, look, frames } = rig(play, { path: tempFile(), limits });
	const turn = await broker.execute(request()).result;
	const log = await frames("run_1");
	expect(verified(log)).toBeUndefined();
	const saved = look.turn("run_1")!;
	expect(saved.status).toBe(turn.status);
	return { turn: saved, log };
}

/** An iterator made by hand, as a module may have one. */
const iterable = (iterator: object): AsyncIterable<EngineEvent> => ({
	[Symbol.asyncIterator]: () => iterator as AsyncIterator<EngineEvent>,
});

describe("what an engine may throw", () => {
	const oddMessage = Object.assign(new Error("x"), { message: { a: 1 } as unknown as string });
	const mute = { toJSON: () => undefined };
	test.each<[string, unknown, string]>([
		["an object without a prototype", Object.assign(Object.create(null), { why: "because" }), '{"why":"because"}'],
		["what cannot be shown at all", Object.assign(Object.create(null), { n: 1n }), "something that cannot be shown"],
		["an Error whose message is not text", oddMessage, '{"a":1}'],
		["nothing", undefined, "the engine failed without a message"],
		["what says nothing", mute, "the engine failed without a message"],
		["a symbol", Symbol("s"), "Symbol(s)"],
	])("%s", async (_what, thrown, message) => {
		const { turn, log } = await played(async function* () {
			yield text("half");
			// oxlint-disable-next-line typescript/only-throw-error -- an engine may throw anything
			throw thrown;
		});
		expect(turn).toMatchObject({ status: "failed", error: { code: "engine_failed", message } });
		expect(finalEnd(log).error?.message).toBe(message);
	});

	test("I11: a very long message is cut, and says so", async () => {
		const { turn } = await played(async function* () {
			yield text("half");
			throw new Error("e".repeat(100_000));
		});
		expect(turn.error!.message.length).toBeLessThan(5000);
		expect(turn.error!.message).toMatch(/e… \[cut: 100000 characters in all\]$/);
	});
});

describe("an invalid iterator", () => {
	test.each<[string, () => unknown]>([
		["nothing", () => undefined],
		["a promise", () => Promise.resolve()],
		["a generator that is not async", () => [text("x")][Symbol.iterator]()],
	])("run() that returns %s: the message says how to write it", async (_what, run) => {
		const { turn } = await played(run as Play);
		expect(turn.error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("`async *run(") });
	});

	test.each<[string, object]>([
		["a step that is nothing", { next: async () => undefined }],
		["a next that throws at once", { next: () => JSON.parse("{") }],
		["junk, and a return that hangs", { next: async () => ({ value: 5, done: false }), return: () => never }],
		["junk, and a return that throws", { next: async () => ({ value: 5 }), return: () => JSON.parse("{") }],
		["junk, and a return without a promise", { next: async () => ({ value: 5 }), return: () => 1 }],
	])("%s", async (_what, iterator) => {
		expect((await played(() => iterable(iterator))).turn).toMatchObject({ status: "failed", reason: "error" });
	});

	test("I12: one that keeps yielding after a stop, and hangs in its return", async () => {
		const clock = manualClock();
		let steps = 0;
		const { broker, frames } = rig(
			() => iterable({ next: async () => ({ value: text("."), done: steps++ < 0 }), return: () => never }),
			{ clock, limits: { abortGraceMs: 100 } },
		);
		const { result, abort } = broker.execute(request());
		await until(() => steps > 10);
		abort();
		const before = steps;
		await until(() => steps > before + 2000);
		clock.advance(100);
		expect(await result).toMatchObject({ status: "aborted" });
		expect(verified(await frames("run_1"))).toBeUndefined();
		await new Promise((resolve) => setImmediate(resolve));
		const after = steps;
		await new Promise((resolve) => setImmediate(resolve));
		expect(steps).toBe(after);
	});
});

test("I12: a stop while the engine compacts and ignores it settles, and no reader sees that it still compacts", async () => {
	const clock = manualClock();
	const { broker, frames } = rig(yieldsThenWaits({ type: "compaction", phase: "start" }), {
		clock,
		limits: { abortGraceMs: 100 },
	});
	const { result, abort } = broker.execute(request());
	await until(() => broker.live("run_1")?.compacting === true);
	abort();
	clock.advance(100);
	expect(await result).toMatchObject({ status: "aborted" });
	const fold = createFold();
	for (const frame of await frames("run_1")) fold.push(frame);
	expect(fold.view()).toMatchObject({ compacting: false, state: "aborted", violations: [] });
});

describe("tools", () => {
	test("I5, I11: summaries, arguments and results are kept as they were framed: as text, and cut", async () => {
		const { turn, log } = await played(
			yields(
				tool({ status: "started", args: { all: "a".repeat(200) }, summary: { at: 1 } }),
				tool({ status: "completed", result: "r".repeat(200), summary: "s".repeat(200) }),
			),
			{ toolJsonCharsMax: 100 },
		);
		const [call] = turn.toolCalls;
		const cut = (start: string, count: number) => `${start}… [cut: ${count} characters in all]`;
		expect(call).toMatchObject({
			args: JSON.stringify(cut(`{"all":"${"a".repeat(92)}`, 210)),
			result: JSON.stringify(cut("r".repeat(100), 200)),
			summary: cut("s".repeat(100), 200),
		});
		const fold = createFold();
		for (const frame of log) fold.push(frame);
		const [seen] = fold.view().messages[0]!.tools;
		expect(seen).toMatchObject({
			summary: call!.summary,
			args: JSON.parse(call!.args!) as unknown,
			result: JSON.parse(call!.result!) as unknown,
		});
		expect(log.flatMap((frame) => (frame.type === "stream.chunk" ? [frame.payload] : []))[0]).toContain(
			String.raw`"summary":"{\"at\":1}"`,
		);
	});

	const circle: unknown[] = [];
	circle.push(circle);
	test.each<[string, unknown]>([
		["10n", 10n],
		["a circle", circle],
	])("what cannot be written as JSON (%s) fails the run and names the tool", async (_what, result) => {
		const { turn } = await played(yields(tool({ status: "completed", result })));
		expect(turn.error?.message).toMatch(/^The arguments or the result of tool look are not JSON: /);
	});
});

describe("usage", () => {
	test.each<[string, object, object]>([
		["a number that no table holds", { input: 1e300, output: 3 }, { input: -1, output: 3 }],
		["a name that every object has", { input: 1, output: 2, constructor: 4 }, { input: 1, output: 2, constructor: 4 }],
		["texts and nothing", { input: "7", output: null }, { input: -1, output: -1 }],
		["NaN and endless", { input: Number.NaN, output: Infinity }, { input: -1, output: -1 }],
	])("%s", async (_what, said, kept) => {
		const { turn, log } = await played(yields(text("x"), { type: "usage", ...said } as EngineEvent));
		expect(turn.status).toBe("completed");
		expect(turn.usage).toEqual(kept);
		expect(finalEnd(log).usage).toEqual(kept);
	});
});

describe("P1.10: text that is not well-formed", () => {
	const payloads = (log: Awaited<ReturnType<typeof played>>["log"]) =>
		log.flatMap((frame) => (frame.type === "stream.chunk" ? [frame.payload] : []));

	test("in an error, a summary or a result is mended too", async () => {
		const { turn, log } = await played(async function* () {
			yield tool({ status: "completed", summary: "s\ud83d", result: "r\ude00" });
			throw new Error("e\ud83d");
		});
		expect(turn.error?.message).toBe("e\uFFFD");
		expect(turn.toolCalls).toMatchObject([{ summary: "s\uFFFD", result: '"r\uFFFD"' }]);
		expect(log.map((frame) => JSON.stringify(frame)).filter((record) => /\\ud[89a-f]/i.test(record))).toEqual([]);
	});

	test("half of a pair that stays alone is U+FFFD, in the frames and in the turn", async () => {
		const { turn, log } = await played(
			yields(
				text("x\ude00y\ud83d"),
				text("\ud83dz"),
				{ type: "part", modality: "data", contentType: "text/plain", payload: "p\ud83d" },
				text("\ud83d"),
			),
		);
		expect(payloads(log)).toEqual(["x\uFFFDy", "\uFFFD\uFFFDz", "p\uFFFD", "\uFFFD"]);
		expect(turn.messages.at(-1)?.text).toBe("x\uFFFDy\uFFFD\uFFFDz\uFFFD");
	});

	test("I6, I11: a very long delta becomes many commits, and a stop does not wait for its end", async () => {
		const delta = "😀 long ".repeat(500_000);
		const { broker, bus, look, frames } = rig(yields(text(delta), text("never")), { path: tempFile() });
		const { result, established, abort } = broker.execute(request());
		await established;
		const cursor = await bus.cursor({ log: "run_1" }, 0);
		let longest = 0;
		for await (const batch of follow(cursor)) {
			longest = Math.max(longest, batch.text.length);
			if (bus.stats.commits > 10) abort();
		}
		expect(longest).toBeLessThan(1_000_000);
		expect((await result).status).toBe("aborted");
		const { text: kept } = look.turn("run_1")!.messages.at(-1)!;
		expect(kept.length).toBeGreaterThan(100_000);
		expect(delta.startsWith(kept)).toBe(true);
		const log = await frames("run_1");
		expect(verified(log)).toBeUndefined();
		expect(payloads(log).join("")).toBe(kept);
	});
});
