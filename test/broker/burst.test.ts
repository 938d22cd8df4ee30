/** Events that an engine yields at once: taken as if each had been yielded alone, within the same limits. */

import { copyFileSync } from "node:fs";
import type { EngineEvent, EngineYield } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { follow } from "../../packages/daemon/src/bus/bus.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import { character } from "../character.ts";
import { manualClock } from "../clock.ts";
import { atEffort } from "../effort.ts";
import { quiet } from "../quiet.ts";
import { storeForTest } from "../store.ts";
import {
	engineOf,
	framesOf,
	gate,
	never,
	request,
	rig,
	started,
	tempFile,
	text,
	ticks,
	until,
	verified,
	yields,
} from "./rig.ts";

const completed = (callId: string): EngineEvent => ({ ...started(callId), status: "completed", result: "r" }) as never;
const usage: EngineEvent = { type: "usage", input: 5, output: 1 };

/** A delta that is taken in portions. */
const LONG = "long 😀 ".repeat(20_000);
const COMMIT_RECORDS_MAX = 4;

/** Runs of one Broker, whose log has room for a few records only. */
function runs() {
	const plays = new Map<string, (abort: () => void) => AsyncIterable<EngineYield>>();
	const executions = new Map<string, { abort(): void }>();
	const store = storeForTest({ limits: { commitRecordsMax: COMMIT_RECORDS_MAX, commitCharsMax: 2000 } });
	const engine = engineOf(({ runId }) => plays.get(runId)!(() => executions.get(runId)!.abort()));
	// It stands still: records that differ in their times only are equal.
	const broker = createBroker({ ...quiet, ...store, engine, clock: manualClock(1000) });
	return async (play: (abort: () => void) => AsyncIterable<EngineYield>, disableStreaming = false) => {
		const runId = `run_${plays.size}`;
		plays.set(runId, play);
		const execution = broker.execute(request({ runId, session: runId, traceId: "0".repeat(32), disableStreaming }));
		executions.set(runId, execution);
		await execution.result;
		const turn = store.look.turn(runId)!;
		const frames = await framesOf(store.bus, runId);
		expect(verified(frames)).toBeUndefined();
		const anonymous = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll(runId, "run")) as T;
		return { frames: anonymous(frames), turn: anonymous(turn) };
	};
}

const callId = fc.constantFrom("a", "b", "c");
const delta = fc.oneof(
	{ weight: 8, arbitrary: fc.string({ unit: character, maxLength: 8 }) },
	{ weight: 2, arbitrary: fc.constantFrom("", "\ud83d", "\ude00") },
	{ weight: 1, arbitrary: fc.constant(LONG) },
);
const sound: fc.Arbitrary<EngineEvent> = fc.oneof(
	{ weight: 12, arbitrary: delta.map(text) },
	{ weight: 3, arbitrary: delta.map((said): EngineEvent => ({ type: "reasoning", delta: said })) },
	{ weight: 3, arbitrary: callId.map(started) },
	{ weight: 3, arbitrary: callId.map(completed) },
	fc.constantFrom<EngineEvent>(
		{ type: "message" },
		usage,
		{ type: "compaction", phase: "start" },
		{ type: "compaction", phase: "end" },
		{ type: "signed_reasoning", text: "t", signature: "s" },
		{ type: "part", modality: "card", contentType: "application/json", payload: "{}" },
	),
);
const malformed = fc.constantFrom<unknown>({ type: "txet" }, null, undefined, 5, [], [text("nested")]);
const event = fc.oneof(
	{ weight: 100, arbitrary: sound.map((said) => [said]) },
	// More than one turn of the loop takes.
	{ weight: 2, arbitrary: fc.constantFrom("", ".").map((said) => Array<EngineEvent>(1100).fill(text(said))) },
	{ weight: 1, arbitrary: malformed.map((said) => [said as EngineEvent]) },
);
const script = fc.record({
	events: fc.array(event, { maxLength: 40 }).map((some) => some.flat()),
	/** How long the bursts are, again and again; 0 is an event by itself. */
	sizes: fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 6 }),
	empty: fc.boolean(),
	/** Before the event at this share of all. */
	abortAt: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
	fails: fc.boolean(),
	disableStreaming: fc.boolean(),
});
type Script = typeof script extends fc.Arbitrary<infer T> ? T : never;

/** The events in bursts, none of them across the abort: the engine makes it between two yields. */
async function* played({ events, sizes, empty, abortAt, fails }: Script, abort: () => void) {
	const stop = abortAt === null ? Infinity : Math.floor(abortAt * events.length);
	for (let at = 0, n = 0; at < events.length; n++) {
		if (at === stop) abort();
		if (empty) yield [];
		const size = sizes[n % sizes.length]!;
		const end = Math.min(at + Math.max(1, size), at < stop ? stop : Infinity);
		// An element that is an array would be a nested burst.
		if (size === 0 && !Array.isArray(events[at])) yield events[at]!;
		else yield events.slice(at, end);
		at = size === 0 ? at + 1 : end;
	}
	if (fails) throw new Error("the model is gone");
}

test("I2, I5: however events are grouped, the log, the turn and the end are the same", async () => {
	const run = runs();
	await fc.assert(
		fc.asyncProperty(script, async (made) => {
			const alone = { ...made, sizes: [0], empty: false };
			const expected = await run((abort) => played(alone, abort), made.disableStreaming);
			expect(await run((abort) => played(made, abort), made.disableStreaming)).toEqual(expected);
		}),
		{ numRuns: atEffort(600, 60) },
	);
});

const spoken = (turn: Turn) => turn.messages.at(-1)!.text;

test("I5, I12: a stop at any moment within a burst keeps what was framed until then, and nothing of the rest", async () => {
	const run = runs();
	const burst = Array.from({ length: 3000 }, (_, n) => (n % 1000 === 500 ? text(LONG) : text(`${n} `)));
	const all = burst.map((said) => (said.type === "text" ? said.delta : "")).join("");
	await fc.assert(
		fc.asyncProperty(fc.nat({ max: 400 }), async (turnsOfLoop) => {
			const { frames, turn } = await run(async function* (abort) {
				void ticks(turnsOfLoop).then(abort);
				yield burst;
			});
			const payloads = frames.flatMap((frame) => (frame.type === "stream.chunk" ? [frame.payload] : []));
			expect(payloads.join("")).toBe(spoken(turn));
			expect(all.startsWith(spoken(turn))).toBe(true);
			expect(spoken(turn).length === all.length || turn.status === "aborted").toBe(true);
		}),
		{ numRuns: atEffort(100, 10) },
	);
});

/** An array without an end, and how many of its elements were read. */
function endless(element: EngineEvent) {
	let reads = 0;
	const burst = new Proxy<EngineEvent[]>([], {
		get: (_, key) => {
			if (key === "length") return Number.MAX_SAFE_INTEGER;
			reads++;
			return element;
		},
	});
	return { burst, reads: () => reads };
}

describe("a long burst", () => {
	test.each([
		["with text", "."],
		["that writes nothing", ""],
	])("I12: %s is left when the run has settled, and its engine released", async (_, said) => {
		const clock = manualClock();
		const { burst, reads } = endless(text(said));
		let released = false;
		const { broker, frames } = rig(
			async function* () {
				try {
					yield burst;
				} finally {
					released = true;
				}
			},
			{ clock, limits: { abortGraceMs: 100 } },
		);
		const { result, abort } = broker.execute(request());
		await until(() => reads() > 5000);
		abort();
		const before = reads();
		await until(() => reads() > before + 2000);
		clock.advance(100);
		expect(await result).toMatchObject({ status: "aborted" });
		expect(verified(await frames("run_1"))).toBeUndefined();
		await until(() => released);
		const after = reads();
		await ticks(2);
		expect(reads()).toBe(after);
	});

	test("I6, I11: waits for room like events that come alone", async () => {
		const count = 1000;
		const store = storeForTest({ limits: { commitRecordsMax: COMMIT_RECORDS_MAX } });
		const engine = engineOf(yields(Array<EngineEvent>(count).fill(text("."))));
		await createBroker({ ...quiet, ...store, engine }).execute(request()).result;
		expect(store.bus.stats.commits).toBeGreaterThanOrEqual(count / COMMIT_RECORDS_MAX);
	});

	test("I1: what a reader sees of it, while the rest waits for room, is on record", async () => {
		const path = tempFile();
		const { broker, bus } = rig(yields(Array<EngineEvent>(2000).fill(text("."))), { path });
		const { established, result } = broker.execute(request());
		await established;
		const seen: { last: number; left: string }[] = [];
		for await (const { last } of follow(await bus.cursor({ log: "run_1" }, 0))) {
			// The state that a kill at this moment would leave.
			const left = tempFile();
			for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, left + suffix);
			seen.push({ last, left });
		}
		expect((await result).status).toBe("completed");
		expect(seen.some(({ last }) => last > 1 && last < seen.at(-1)!.last)).toBe(true);
		for (const { last, left } of seen) {
			expect((await storeForTest({ path: left }).bus.describe("run_1"))!.head).toBeGreaterThanOrEqual(last);
		}
	});

	test.each<[string, () => EngineYield[]]>([
		["one burst that writes nothing", () => [Array<EngineEvent>(50_000).fill(text(""))]],
		["many bursts that are empty", () => Array<EngineYield>(50_000).fill([])],
		["many short bursts", () => Array<EngineYield>(5000).fill(Array<EngineEvent>(10).fill(text("")))],
	])("%s does not starve the loop", async (_, bursts) => {
		let turnsOfLoop = 0;
		let over = false;
		const { broker } = rig(async function* () {
			const count = () => {
				turnsOfLoop++;
				if (!over) setImmediate(count);
			};
			setImmediate(count);
			yield* bursts();
			over = true;
		});
		expect((await broker.execute(request()).result).status).toBe("completed");
		expect(turnsOfLoop).toBeGreaterThan(40);
	});
});

describe("what is in a burst", () => {
	const failing = async (...yields: unknown[]) => {
		const { broker } = rig(async function* () {
			yield* yields as EngineYield[];
		});
		return broker.execute(request()).result;
	};

	test.each<[string, unknown]>([
		["an unknown type", { type: "txet" }],
		["nothing", undefined],
		["a text without a delta", { type: "text" }],
		["a burst", [text("nested")]],
		["an empty burst", []],
	])("%s fails the run as it does alone, and what came before it is kept", async (what, element) => {
		const turn = await failing([text("before"), element, text("after")]);
		expect(turn).toMatchObject({ status: "failed", error: { code: "engine_failed" } });
		expect(spoken(turn)).toBe("before");
		expect(turn.error!.message).toMatch(/^The engine yielded something that is not an EngineEvent: /);
		if (!what.endsWith("burst")) expect((await failing(text("before"), element)).error).toEqual(turn.error);
	});

	test("after a stop only outcomes count", async () => {
		const { broker } = rig(async function* (_, signal) {
			yield [text("x"), started("c1")];
			while (!signal.aborted) await ticks(1);
			yield [text("too late"), completed("c1"), completed("c2"), usage, text("too late")];
		});
		const { result, abort } = broker.execute(request());
		await until(() => broker.live("run_1")?.toolCalls.length === 1);
		abort();
		const turn = await result;
		expect(turn).toMatchObject({ status: "aborted", usage: { input: 5, output: 1 } });
		expect(turn.toolCalls).toMatchObject([{ callId: "c1", status: "completed" }]);
		expect(spoken(turn)).toBe("x");
	});
});

describe("the watchdog", () => {
	const timedOut = async (yields: EngineYield[], limits: object) => {
		const clock = manualClock();
		const door = gate();
		const { broker } = rig(
			async function* () {
				yield* yields;
				door.open();
				await never;
			},
			{ clock, limits: { abortGraceMs: 1, ...limits } },
		);
		const { result } = broker.execute(request());
		await door.opened;
		clock.advance(11);
		clock.advance(1);
		return (await result).error?.message;
	};

	test("an empty burst does not count as an event", async () => {
		expect(await timedOut([[]], { firstTokenMs: 10 })).toBe("The engine said nothing within 10 ms.");
	});

	test("a burst with text is one", async () => {
		const limits = { firstTokenMs: 10, interTokenMs: 11 };
		expect(await timedOut([[text("a"), text("b")]], limits)).toBe("The engine went silent for 11 ms.");
	});

	test("a tool that starts in the middle of a burst is watched", async () => {
		const yields = [text("first"), [text("a"), started("c1"), text("b")]];
		expect(await timedOut(yields, { toolMs: 10, interTokenMs: 5000 })).toBe("A tool took longer than 10 ms.");
	});
});
