/** Flushing by load, simulated: the real Bus and the real pump, with time and the event loop's load as the script says. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Batch, type Bus, createBus, type LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import type { LogSource } from "../../../packages/daemon/src/bus/port.ts";
import { Flusher } from "../../../packages/daemon/src/edge/stream/flusher.ts";
import { Pump } from "../../../packages/daemon/src/edge/stream/pump.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { chunkEncoder, encodeFrame, type Frame } from "../../../packages/protocol/src/protocol.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { quiet } from "../../quiet.ts";
import { until } from "../../until.ts";
import { ScriptedCursor } from "./scripted.ts";

const MS_MAX = 60;
const SAMPLE_MS = 100;

type Kind = "begin" | "first" | "token" | "tool" | "end";

const frameOf = (kind: Kind, n: number): string => {
	const common = { message_id: "m1", ts: n };
	const toolPayload = JSON.stringify({ type: "tool_status", toolName: "t", toolCallId: `${n}`, status: "running" });
	const frames: Record<Exclude<Kind, "token" | "first">, Frame> = {
		begin: {
			type: "stream.begin",
			...common,
			run_id: "r1",
			trace_id: "t1",
			correlation_group: "r1",
			modality: "text",
			content_type: "text/markdown",
			session: "s",
		},
		tool: { type: "stream.chunk", ...common, seq_no: n, payload: toolPayload, is_partial: false },
		end: { type: "stream.end", ...common, total_chunks: n, checksum: "0", final: true, reason: "completed" },
	};
	if (kind === "first") return chunkEncoder("m1")(1, "first", n);
	// Spelled like an end and a tool's status, inside of a text.
	if (kind === "token") return chunkEncoder("m1")(n, `"stream.end" "is_partial":false ${n}`, n);
	return encodeFrame(frames[kind]);
};

/** A moment of the simulation: steps in between are ticks of the event loop. */
interface Moment {
	step: number;
	at: number;
	/** How long the loop had been blocked in all. */
	blockedMs: number;
}

interface Visible extends Moment {
	kind: Kind;
	spacingMs: number;
}

interface Reader {
	log: number;
	joined: Moment;
	got: Moment[];
	batches: Batch[];
	ended: boolean;
	/** Room for this many more writes. */
	room: number;
	drain(): void;
}

async function simulate(logCount: number) {
	const clock = manualClock();
	const bus: Bus = createBus({ ...quiet, storage: memoryStorage() });
	let utilisation = 0;
	const flusher = new Flusher({ flushMsMax: MS_MAX, log: silentLog, clock, utilisation: () => utilisation });
	let step = 0;
	let blockedMs = 0;
	const moment = (): Moment => ({ step, at: clock.now(), blockedMs });
	const logs: { writer: LogWriter; visible: Visible[]; sealed: boolean }[] = [];
	const readers: Reader[] = [];

	for (let n = 0; n < logCount; n++) {
		const writer = await bus.create({ log: `r${n}`, kind: "run", chain: `c${n}` }, [frameOf("begin", 0)]);
		logs.push({ writer, visible: [{ kind: "begin", spacingMs: 0, ...moment() }], sealed: false });
	}
	return {
		clock,
		bus,
		flusher,
		logs,
		readers,
		setLoad(busy: number) {
			utilisation = busy;
		},
		/** The load lasts until the spacing is at its limit. */
		overload() {
			utilisation = 1;
			for (let n = 0; flusher.spacingMs < MS_MAX && n < 20; n++) {
				this.say(0, "tool");
				this.advance(SAMPLE_MS);
			}
		},
		async join(log: number, source: LogSource = { log: `r${log}` }, room = Infinity) {
			step++;
			const cursor = await bus.cursor(source, 0);
			const reader: Reader = { log, joined: moment(), got: [], batches: [], ended: false, room, drain() {} };
			const pump = new Pump<Batch>(
				{
					write(batch) {
						reader.batches.push(batch);
						for (let n = 0; n < batch.count; n++) reader.got.push(moment());
						return --reader.room > 0;
					},
					waiting: false,
					close() {},
				},
				flusher,
			);
			reader.drain = () => {
				reader.room = Infinity;
				pump.drained();
			};
			readers.push(reader);
			const ended = () => {
				reader.ended = true;
			};
			pump.add({ cursor, encoder: { text: (batch) => batch }, closes: "A", ended, failed() {} });
			return reader;
		},
		/** One record, durable and visible in the tick of the call (I1). */
		say(log: number, kind: Kind) {
			const { writer, visible, sealed } = logs[log]!;
			if (sealed) return;
			step++;
			visible.push({ kind, spacingMs: flusher.spacingMs, ...moment() });
			const record = frameOf(kind, visible.length);
			if (kind === "end") {
				logs[log]!.sealed = true;
				void writer.seal([record]);
			} else writer.append(record);
			bus.flush();
		},
		advance(ms: number) {
			for (let n = 0; n < ms; n++) {
				step++;
				clock.advance(1);
			}
		},
		block(ms: number) {
			step++;
			blockedMs += ms;
			clock.block(ms);
		},
	};
}

type Simulation = Awaited<ReturnType<typeof simulate>>;
type Command =
	| { do: "say"; log: number; kind: Kind }
	| { do: "advance" | "block"; ms: number }
	| { do: "load"; utilisation: number }
	| { do: "join"; log: number; chain: boolean };

async function perform(simulation: Simulation, command: Command): Promise<void> {
	const log = "log" in command ? command.log % simulation.logs.length : 0;
	switch (command.do) {
		case "say":
			return simulation.say(log, command.kind);
		case "advance":
		case "block":
			return simulation[command.do](command.ms);
		case "load":
			return simulation.setLoad(command.utilisation);
		case "join":
			await simulation.join(log, command.chain ? { chain: `c${log}` } : { log: `r${log}` });
			return;
		default:
			command satisfies never;
	}
}

/** How long the record waited for the reader while the loop could have sent it. */
const waitedMs = (since: Moment, sent: Moment) => sent.at - since.at - (sent.blockedMs - since.blockedMs);

function judge({ logs, readers }: Simulation): void {
	for (const { log, joined, got, batches } of readers) {
		const { visible } = logs[log]!;
		// I4: whole, once, in order.
		expect(batches.map(({ first, last }) => [first, last])).toEqual(
			batches.map(({ first, count }) => [first, first + count - 1]),
		);
		expect(batches.flatMap(({ first, count }) => Array.from({ length: count }, (_, n) => first + n))).toEqual(
			visible.map((_, n) => n + 1),
		);
		expect(batches.flatMap(({ records }) => records)).toEqual(
			visible.map(({ kind }, n) => frameOf(kind, n === 0 ? 0 : n + 1)),
		);
		for (const [n, sent] of got.entries()) {
			const since = visible[n]!.step < joined.step ? joined : visible[n]!;
			expect(waitedMs(since, sent)).toBeLessThanOrEqual(MS_MAX);
			const neverWaits = visible[n]!.kind !== "token" || visible[n]!.spacingMs === 0 || since === joined;
			if (neverWaits) expect(sent.step).toBe(since.step);
		}
	}
	// The readers of a log are served in the same tick.
	for (const [n, { visible }] of logs.entries()) {
		const shares = readers.filter(({ log }) => log === n);
		for (const offset of visible.keys()) {
			const steps = shares
				.filter(({ joined }) => joined.step < visible[offset]!.step)
				.map(({ got }) => got[offset]!.step);
			expect(new Set(steps).size).toBeLessThanOrEqual(1);
		}
	}
}

const log = fc.nat({ max: 2 });
const kind = fc.constantFrom<Kind>("token", "token", "token", "token", "token", "token", "first", "tool");
const command = fc.oneof(
	{ weight: 12, arbitrary: fc.record({ do: fc.constant("say"), log, kind }) },
	{ weight: 6, arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.integer({ min: 1, max: 40 }) }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.integer({ min: 100, max: 1000 }) }) },
	{ weight: 2, arbitrary: fc.record({ do: fc.constant("block"), ms: fc.integer({ min: 1, max: 200 }) }) },
	{
		weight: 2,
		arbitrary: fc.record({ do: fc.constant("load"), utilisation: fc.constantFrom(0, 0.5, 0.8, 0.97, 1, 1) }),
	},
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("join"), log, chain: fc.boolean() }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("say"), log, kind: fc.constant("end") }) },
) as fc.Arbitrary<Command>;

describe("flushing by load", () => {
	it("I1, I4, I6: over any arrivals and loads all in order, no wait beyond flushMsMax, and none with room or for what never waits", async () => {
		let deferred = 0;
		await fc.assert(
			fc.asyncProperty(
				fc.integer({ min: 1, max: 3 }),
				fc.boolean(),
				fc.array(command, { maxLength: 80 }),
				async (logCount, isOverloaded, commands) => {
					const simulation = await simulate(logCount);
					for (let n = 0; n < logCount; n++) {
						await simulation.join(n);
						await simulation.join(n, { chain: `c${n}` });
					}
					if (isOverloaded) simulation.overload();
					for (const each of commands) await perform(simulation, each);
					simulation.advance(MS_MAX);
					judge(simulation);
					deferred += simulation.flusher.deferred;
					await simulation.bus.close();
				},
			),
			{ numRuns: atEffort(1000) },
		);
		expect(deferred).toBeGreaterThan(0);
	});

	it("I1: an idle reader's token leaves in the tick in which it became durable", async () => {
		const simulation = await simulate(1);
		const reader = await simulation.join(0);
		for (let n = 0; n < 50; n++) {
			simulation.say(0, "token");
			expect(reader.got).toHaveLength(n + 2);
			simulation.advance(5);
		}
		expect(simulation.flusher).toMatchObject({ spacingMs: 0, deferred: 0 });
	});

	it("merges the tokens of a busy loop, for all readers of a log in one write each", async () => {
		const simulation = await simulate(1);
		const readers = [await simulation.join(0), await simulation.join(0, { chain: "c0" })];
		simulation.overload();
		const before = simulation.logs[0]!.visible.length;
		for (let n = 0; n < 120; n++) {
			simulation.say(0, "token");
			simulation.advance(5);
		}
		simulation.advance(MS_MAX);
		for (const { batches, got } of readers) {
			expect(got).toHaveLength(before + 120);
			// 600 ms at a spacing of 60 ms, the first at once, and a cut of the log in between.
			expect(batches.length - before).toBeLessThanOrEqual(13);
		}
		judge(simulation);
	});

	it("I6: a flood is not held back: so many records are worth a write of their own", async () => {
		const simulation = await simulate(1);
		const reader = await simulation.join(0);
		simulation.overload();
		for (let n = 0; n < 1 + 16; n++) simulation.say(0, "token");
		expect(reader.got).toHaveLength(simulation.logs[0]!.visible.length);
	});

	it("ST14: a reader that is reading does not wait: what came meanwhile is read next", async () => {
		const simulation = await simulate(1);
		await simulation.join(0);
		simulation.overload();
		simulation.say(0, "token");
		const cursor = new ScriptedCursor(1, []);
		cursor.mode = "early";
		const sent: number[] = [];
		const transport = { write: (first: number) => sent.push(first) > 0, waiting: false, close() {} };
		const pump = new Pump<number>(transport, simulation.flusher);
		pump.add({ cursor, encoder: { text: ({ first }) => first }, closes: "A", ended() {}, failed() {} });
		const log = { head: 1, sealedAt: undefined, newest: Batch.of(1, [frameOf("token", 2)]) };
		expect(simulation.flusher.defers(log, () => {})).toBe(false);
		// A reader of it that has read everything would wait from here on.
		log.head = 2;
		cursor.grown = log;
		cursor.append(2);
		for (let n = 0; n < 3; n++) {
			cursor.settle();
			for (let tick = 0; tick < 4; tick++) await Promise.resolve();
		}
		expect(sent).toEqual([1, 2]);
	});

	it("what is spaced further than the flushes anyway is not held back", async () => {
		const simulation = await simulate(1);
		const reader = await simulation.join(0);
		simulation.overload();
		for (let n = 0; n < 20; n++) {
			simulation.advance(MS_MAX);
			simulation.say(0, "token");
			expect(reader.got.at(-1)!.at).toBe(simulation.clock.now());
		}
		expect(simulation.flusher.deferred).toBe(0);
	});

	it("logs that grow together are flushed over the whole interval", async () => {
		const simulation = await simulate(30);
		for (let n = 0; n < 30; n++) await simulation.join(n);
		simulation.overload();
		for (let n = 0; n < 30; n++) simulation.say(n, "token");
		for (let n = 0; n < 30; n++) simulation.say(n, "token");
		simulation.advance(MS_MAX);
		const perMoment = Map.groupBy(simulation.readers, ({ got }) => got.at(-1)!.at);
		expect(perMoment.size).toBeGreaterThan(10);
		for (const { length } of perMoment.values()) expect(length).toBeLessThan(6);
	});

	it("an idle daemon does not measure", async () => {
		const simulation = await simulate(1);
		await simulation.join(0);
		let timers = 0;
		const { after } = simulation.clock;
		simulation.clock.after = (...what) => {
			timers++;
			return after(...what);
		};
		simulation.overload();
		simulation.setLoad(0);
		simulation.advance(10_000);
		timers = 0;
		simulation.advance(10_000);
		expect(timers).toBe(0);
	});

	it.each([1, 10])("I6: what all readers together hold does not grow with a backlog (× %i)", async (times) => {
		const simulation = await simulate(4);
		await simulation.join(0);
		simulation.overload();
		simulation.readers.length = 0;
		for (let n = 0; n < 200; n++) await simulation.join(n % 4, { log: `r${n % 4}` }, 4);
		const heldChars = () =>
			simulation.readers.reduce((sum, { batches }) => sum + batches.reduce((own, { text }) => own + text.length, 0), 0);
		const tokens = 100 * times;
		const { deferred } = simulation.flusher;
		for (let n = 0; n < tokens; n++) {
			for (let each = 0; each < 4; each++) simulation.say(each, "token");
			simulation.advance(2);
		}
		// No client reads: each reader holds only the writes that it had room for, however many records followed.
		expect(simulation.readers.every(({ batches }) => batches.length === 4)).toBe(true);
		expect(simulation.flusher.deferred).toBeGreaterThan(deferred);
		expect(heldChars() / 200).toBeLessThan(64 * frameOf("token", 9999).length);
		const writesBefore = simulation.readers[0]!.batches.length;
		for (const reader of simulation.readers) reader.drain();
		const isBehind = ({ log: n, got }: Reader) => got.length < simulation.logs[n]!.visible.length;
		await until("everyone has read the backlog", () => !simulation.readers.some(isBehind));
		// The backlog is merged: as many writes as the log has segments, not as it has records.
		for (const { log: n, got, batches } of simulation.readers) {
			expect(got).toHaveLength(simulation.logs[n]!.visible.length);
			expect(batches.length - writesBefore).toBeLessThanOrEqual(1 + (tokens * 150) / (16 * 1024));
		}
	});

	it("I6: readers of a backlog leave room for others: what they take in one turn of the loop is limited for all together", async () => {
		const simulation = await simulate(1);
		for (let n = 0; n < 1000; n++) simulation.say(0, "token");
		const turns: number[] = [0];
		let isOver = false;
		const turn = () => {
			turns.push(0);
			if (!isOver) setImmediate(turn);
		};
		setImmediate(turn);
		const spend = simulation.flusher.spend.bind(simulation.flusher);
		simulation.flusher.spend = (chars) => {
			turns[turns.length - 1]! += chars;
			spend(chars);
		};
		for (let n = 0; n < 100; n++) await simulation.join(0);
		await until("everyone has read the backlog", () => simulation.readers.every(({ got }) => got.length === 1001));
		isOver = true;
		const segment = Math.max(...simulation.readers[0]!.batches.map(({ text }) => text.length));
		expect(turns.reduce((sum, chars) => sum + chars)).toBeGreaterThan(8 * 1024 * 1024);
		expect(Math.max(...turns)).toBeLessThanOrEqual(512 * 1024 + segment);
	});
});
