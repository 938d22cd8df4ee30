/** The pump over every schedule: wakes, reads at once and over promises, failing reads, a full transport, drops, closing. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Flusher } from "../../../packages/daemon/src/edge/stream/flusher.ts";
import { Pump } from "../../../packages/daemon/src/edge/stream/pump.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import type { CloseMode } from "../../../packages/protocol/src/protocol.ts";
import { atEffort } from "../../effort.ts";
import { until } from "../../until.ts";
import { type ReadMode, ScriptedCursor, ScriptedEncoder, ScriptedTransport, type Sent } from "./scripted.ts";

interface Stream {
	cursor: ScriptedCursor;
	encoder: ScriptedEncoder;
	closes: CloseMode | undefined;
	outcome: "open" | "ended" | "failed" | "dropped";
	drop(): void;
}

interface Setting {
	closes: CloseMode | undefined;
	batchMax: number;
	/** Records that are there before the subscription. */
	head: number;
	skipped?: number;
}

function play(settings: readonly Setting[], capacity = Infinity) {
	const broken: string[] = [];
	const transport = new ScriptedTransport(capacity, broken);
	const pump = new Pump<Sent>(transport, new Flusher({ flushMsMax: 0, log: silentLog }));
	transport.pump = pump;
	const cursors = settings.map(({ batchMax, head }) => {
		const cursor = new ScriptedCursor(batchMax, broken);
		cursor.head = head;
		return cursor;
	});
	const streams = settings.map(({ closes, skipped }, id): Stream => {
		const cursor = cursors[id]!;
		const encoder = new ScriptedEncoder(id, cursors, broken, skipped);
		const stream: Stream = { cursor, encoder, closes, outcome: "open", drop() {} };
		const drop = pump.add({
			cursor,
			encoder,
			closes,
			ended() {
				stream.outcome = "ended";
			},
			failed() {
				stream.outcome = "failed";
			},
		});
		stream.drop = () => {
			if (stream.outcome === "open") stream.outcome = "dropped";
			drop();
		};
		return stream;
	});
	return { broken, transport, pump, streams };
}

const settled = async () => {
	for (let i = 0; i < 4; i++) await Promise.resolve();
};

type Playing = ReturnType<typeof play>;
type Command =
	| { do: "append"; id: number; count: number }
	| { do: "seal" | "wake" | "settle" | "fail" | "drop"; id: number }
	| { do: "read"; id: number; mode: ReadMode }
	| { do: "drain"; capacity: number }
	| { do: "tick" | "heartbeat" | "stop" };

function perform({ transport, pump, streams }: Playing, command: Command): Promise<void> | void {
	const stream = "id" in command ? streams[command.id % streams.length]! : streams[0]!;
	const { cursor } = stream;
	switch (command.do) {
		case "append":
			return cursor.append(command.count);
		case "seal":
		case "wake":
		case "settle":
			return cursor[command.do]();
		case "fail":
			return cursor.fail(new Error("the store is away"));
		case "read":
			cursor.mode = command.mode;
			return;
		case "drop":
			return stream.drop();
		case "drain":
			return transport.drain(command.capacity);
		case "tick":
			return settled();
		case "heartbeat":
			return pump.heartbeat();
		case "stop":
			return pump.close("stopping");
		default:
			command satisfies never;
	}
}

/** Everything that can still happen happens: the peer reads, reads are settled, logs are sealed. */
async function finish({ transport, streams }: Playing): Promise<void> {
	transport.drain();
	for (const { cursor } of streams) cursor.seal();
	const records = streams.reduce((sum, { cursor }) => sum + cursor.head, 0);
	// Each round settles one read of every stream.
	for (let round = 0; round < 2 * records + 10; round++) {
		await settled();
		for (const { cursor } of streams) cursor.settle();
	}
	await settled();
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

function judge({ broken, transport, streams }: Playing): void {
	expect(broken).toEqual([]);
	const stopped = transport.closedFor.length > 0;
	for (const [id, { cursor, encoder, closes, outcome }] of streams.entries()) {
		const sent = transport.sent.filter((data) => data.id === id && data.type !== "heartbeat");
		const whole = !stopped && outcome !== "dropped" && outcome !== "failed";
		expect(encoder.offsets).toEqual(upTo(whole ? cursor.head : encoder.offsets.length));
		const ends = outcome === "ended" || (whole && closes !== "D");
		expect(outcome === "ended").toBe(ends);
		// All that was encoded was written, once and in order, between the opening and the end.
		expect(sent[0]?.type).toBe("open");
		expect(sent.findIndex(({ type }) => type === "end")).toBe(ends ? sent.length - 1 : -1);
		const firsts = sent.flatMap((data) => (data.type === "records" ? [data.first] : []));
		expect(firsts).toEqual([...new Set(firsts)].toSorted((a, b) => a - b));
		expect(cursor.closed).toBe(ends || stopped || outcome === "dropped" || outcome === "failed");
		// A read has a cause: the subscription, a wake, a batch before it, or room again.
		expect(cursor.reads).toBeLessThanOrEqual(1 + cursor.wakes + cursor.handed + transport.drains);
	}
}

const setting: fc.Arbitrary<Setting> = fc.record({
	closes: fc.constantFrom("A", "B", "C", "D", undefined),
	batchMax: fc.integer({ min: 1, max: 3 }),
	head: fc.nat({ max: 6 }),
	skipped: fc.constantFrom(2, 3, Infinity, Infinity),
});
const id = fc.nat({ max: 3 });
const mode = fc.constantFrom<ReadMode>("now", "early", "late");
const command: fc.Arbitrary<Command> = fc.oneof(
	{ weight: 6, arbitrary: fc.record({ do: fc.constant("append"), id, count: fc.integer({ min: 1, max: 4 }) }) },
	{ weight: 6, arbitrary: fc.record({ do: fc.constant("settle"), id }) },
	{ weight: 5, arbitrary: fc.record({ do: fc.constant("tick") }) },
	{ weight: 4, arbitrary: fc.record({ do: fc.constant("wake"), id }) },
	{ weight: 4, arbitrary: fc.record({ do: fc.constant("read"), id, mode }) },
	{ weight: 4, arbitrary: fc.record({ do: fc.constant("drain"), capacity: fc.integer({ min: 1, max: 4 }) }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constantFrom("seal", "fail", "drop"), id }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constantFrom("heartbeat", "heartbeat", "heartbeat", "stop") }) },
) as fc.Arbitrary<Command>;

describe("pump", () => {
	it("ST14, I4, I6: over any schedule every record once and in order, one read in flight, one batch held, each in turn", async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(setting, { minLength: 1, maxLength: 4 }),
				fc.integer({ min: 1, max: 4 }),
				fc.array(command, { maxLength: 60 }),
				async (settings, capacity, commands) => {
					const playing = play(settings, capacity);
					for (const each of commands) await perform(playing, each);
					await finish(playing);
					judge(playing);
				},
			),
			{ numRuns: atEffort(20_000) },
		);
	});

	it("a batch that is there is written in the tick of its wake", () => {
		const { transport, streams } = play([{ closes: "A", batchMax: 2, head: 0 }]);
		streams[0]!.cursor.append(3);
		expect(transport.sent).toEqual([
			{ id: 0, type: "open" },
			{ id: 0, type: "records", first: 1, count: 2 },
			{ id: 0, type: "records", first: 3, count: 1 },
		]);
	});

	it("ST14: wakes during a read make one more read, and none when none came", async () => {
		const { streams } = play([{ closes: "A", batchMax: 5, head: 0 }]);
		const { cursor, encoder } = streams[0]!;
		cursor.mode = "early";
		cursor.wake();
		const { reads } = cursor;
		cursor.append(1);
		cursor.append(1);
		expect(cursor.reads).toBe(reads);
		cursor.settle();
		await settled();
		expect(cursor.reads).toBe(reads + 1);
		cursor.settle();
		await settled();
		expect(encoder.offsets).toEqual([1, 2]);
		cursor.settle();
		await settled();
		expect(cursor.reads).toBe(reads + 2);
	});

	it("I6: a long stretch that the encoder leaves out does not hold up the event loop", async () => {
		const { streams, transport } = play([{ closes: "A", batchMax: 1, head: 1000, skipped: 1 }]);
		const { cursor, encoder } = streams[0]!;
		expect(encoder.offsets.length).toBeLessThan(100);
		cursor.seal();
		await until("the end", () => streams[0]!.outcome === "ended");
		expect(encoder.offsets).toEqual(upTo(1000));
		expect(transport.sent.map(({ type }) => type)).toEqual(["open", "end"]);
	});

	it("P5.1: A, B, C and an answer end after the last record, with the encoder's end; D does not", () => {
		const modes = ["A", "B", "C", undefined, "D"] as const;
		const { transport, streams } = play(modes.map((closes) => ({ closes, batchMax: 9, head: 2 })));
		expect(streams.map(({ outcome }) => outcome)).toEqual(Array(5).fill("open"));
		for (const { cursor } of streams) cursor.seal();
		expect(streams.map(({ outcome }) => outcome)).toEqual(["ended", "ended", "ended", "ended", "open"]);
		expect(transport.sent.filter(({ type }) => type === "end").map((data) => data.id)).toEqual([0, 1, 2, 3]);
		expect(transport.closedFor).toEqual([]);
	});

	it("one subscription's failure leaves the others alone", () => {
		const { pump, transport, streams } = play([
			{ closes: "A", batchMax: 1, head: 0 },
			{ closes: "A", batchMax: 1, head: 0 },
		]);
		streams[0]!.cursor.fail(new Error("the store is away"));
		for (const { cursor } of streams) cursor.append(2);
		expect(streams.map(({ outcome }) => outcome)).toEqual(["failed", "open"]);
		expect(streams[1]!.encoder.offsets).toEqual([1, 2]);
		pump.close("stopping");
		expect(transport.closedFor).toEqual(["stopping"]);
		expect(streams.every(({ cursor }) => cursor.closed)).toBe(true);
	});

	it("an encoder that fails ends its own subscription", () => {
		const { streams } = play([{ closes: "A", batchMax: 1, head: 0 }]);
		streams[0]!.encoder.text = () => {
			throw new Error("this dialect cannot say that");
		};
		streams[0]!.cursor.append(1);
		expect(streams[0]!.outcome).toBe("failed");
		expect(streams[0]!.cursor.closed).toBe(true);
	});

	it("a subscription that comes after the close gets nothing, and its cursor is closed", () => {
		const { pump, transport, streams } = play([{ closes: "D", batchMax: 1, head: 0 }]);
		pump.close("stopping");
		const cursor = new ScriptedCursor(1, []);
		pump.add({ ...streams[0]!, cursor, ended() {}, failed() {} });
		expect(cursor).toMatchObject({ closed: true, reads: 0 });
		expect(transport.sent).toHaveLength(1);
	});

	it("I11: only a peer that leaves data unread is stalled", () => {
		const { pump, transport, streams } = play([{ closes: "D", batchMax: 1, head: 0 }]);
		transport.drain();
		pump.timedOut();
		expect(transport.closedFor).toEqual([]);
		streams[0]!.cursor.append(1);
		pump.timedOut();
		expect(transport.closedFor).toEqual(["stalled"]);
		expect(streams[0]!.cursor.closed).toBe(true);
	});

	it("P6.8: heartbeats go to who got nothing since the last one and has read everything", () => {
		const { pump, transport, streams } = play([{ closes: "D", batchMax: 1, head: 0 }]);
		const beats = () => {
			pump.heartbeat();
			return transport.sent.filter(({ type }) => type === "heartbeat").length;
		};
		expect(beats()).toBe(0);
		expect(beats()).toBe(0);
		transport.drain();
		expect(beats()).toBe(1);
		transport.drain();
		streams[0]!.cursor.append(1);
		transport.drain();
		expect(beats()).toBe(1);
		expect(beats()).toBe(2);
		expect(beats()).toBe(2);
	});

	it("P6.8: records that the encoder leaves out are no sign of life: their reader gets heartbeats", () => {
		const { pump, transport, streams } = play([{ closes: "D", batchMax: 1, head: 0, skipped: 1 }]);
		pump.heartbeat();
		for (let beat = 0; beat < 3; beat++) {
			transport.drain();
			streams[0]!.cursor.append(1);
			pump.heartbeat();
		}
		expect(transport.sent.map(({ type }) => type)).toEqual(["open", "heartbeat", "heartbeat", "heartbeat"]);
	});
});
