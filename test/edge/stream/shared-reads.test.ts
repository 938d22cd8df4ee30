/** Many readers of one log under load: what they waited for is read once for all of them, or not at all. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { type Batch, type Bus, createBus, type LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../../packages/daemon/src/bus/storage.ts";
import { Flusher } from "../../../packages/daemon/src/edge/stream/flusher.ts";
import { Pump } from "../../../packages/daemon/src/edge/stream/pump.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { chunkEncoder } from "../../../packages/protocol/src/protocol.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { type ManualClock, manualClock } from "../../clock.ts";
import { quiet } from "../../quiet.ts";

const MS_MAX = 60;
const READERS = 20;
const SEGMENT_CHARS = 1000;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const encode = chunkEncoder("m1");
/** A further piece of a text: it may wait. */
const token = (n: number) => encode(n + 1, `token ${n}`, 0);

let clock: ManualClock;
let inner: Storage;
let flusher: Flusher;
let pumps: Pump<Batch>[];
const buses: Bus[] = [];
beforeEach(() => {
	clock = manualClock(1_000_000);
	inner = memoryStorage(undefined, () => clock.now());
	flusher = new Flusher({ flushMsMax: MS_MAX, log: silentLog, clock, utilisation: () => 1 });
	pumps = [];
});
afterEach(async () => {
	for (const pump of pumps) pump.gone();
	for (const bus of buses.splice(0)) await bus.close();
});

/** The store with each read counted, and `changed` methods. */
function counted(changed: Partial<Storage> = {}) {
	const seen = { reads: 0 };
	const storage = new Proxy(inner, {
		get(_, name: keyof Storage) {
			const method = (changed[name] ?? inner[name]) as (...args: unknown[]) => unknown;
			return (...args: unknown[]) => {
				if (name === "read") seen.reads++;
				return method.apply(inner, args);
			};
		},
	});
	return { seen, storage };
}

function open(storage: Storage, shared = false): Bus {
	const bus = createBus({ ...quiet, storage, clock, shared, limits: { segmentCharsMax: SEGMENT_CHARS, tidyMs: 1 } });
	buses.push(bus);
	return bus;
}

/** The batches that each of many readers is sent. */
async function followers(bus: Bus): Promise<Batch[][]> {
	const sent: Batch[][] = [];
	for (let n = 0; n < READERS; n++) {
		const cursor = await bus.cursor({ log: "run" }, 0);
		const batches: Batch[] = [];
		const pump = new Pump<Batch>({ write: (batch) => batches.push(batch) > 0, waiting: false, close() {} }, flusher);
		pump.add({ cursor, encoder: { text: (batch) => batch }, closes: "A", ended() {}, failed: expect.unreachable });
		pumps.push(pump);
		sent.push(batches);
	}
	return sent;
}

async function say(writer: LogWriter, record: string): Promise<void> {
	writer.append(record);
	await writer.flushed();
}

/** The load lasts until the spacing is at its limit. */
async function overload(writer: LogWriter): Promise<void> {
	for (let n = 0; flusher.spacingMs < MS_MAX && n < 20; n++) {
		await say(writer, '"not a text"');
		await turn();
		clock.advance(100);
	}
	expect(flusher.spacingMs).toBe(MS_MAX);
}

const recordsOf = (batches: readonly Batch[]) => batches.flatMap(({ records }) => records);
const totalOf = (batches: readonly Batch[]) => recordsOf(batches).length;

it("ST22: a log of another daemon grows by the commits that are followed: no reader asks the store, however many there are under load", async () => {
	const { seen, storage } = counted({ read: async (...args) => inner.read(...args) });
	const writer = await open(inner, true).create({ log: "run", kind: "run" }, ['"begin"']);
	const sent = await followers(open(storage, true));
	await overload(writer);
	await turn();
	const before = { reads: seen.reads, records: totalOf(sent[0]!) };
	expect(before.records).toBeGreaterThan(1);
	const growths = 12;
	for (let n = 1; n <= growths; n++) {
		await say(writer, token(n));
		for (let turns = 0; turns < 3; turns++) await turn();
		clock.advance(5);
	}
	clock.advance(MS_MAX);
	for (let turns = 0; turns < 3; turns++) await turn();
	for (const batches of sent) expect(totalOf(batches)).toBe(before.records + growths);
	expect(seen.reads - before.reads).toBe(0);
});

it("I6: what waits for a flush when its log is cut, or ends, is one batch for all readers, and no page", async () => {
	const { seen, storage } = counted();
	const bus = open(storage);
	const writer = await bus.create({ log: "run", kind: "run" }, ['"begin"']);
	const sent = await followers(bus);
	await overload(writer);
	const said = totalOf(sent[0]!);
	seen.reads = 0;
	let tokens = 0;
	// Across several cuts, and until a reader waits.
	while (tokens < 100 || totalOf(sent[0]!) === said + tokens) {
		await say(writer, token(++tokens));
		clock.advance(1);
	}
	expect(flusher.deferred).toBeGreaterThan(1);
	await writer.seal(['"end"']);
	for (const batches of sent) {
		expect(recordsOf(batches).slice(said)).toEqual([
			...Array.from({ length: tokens }, (_, n) => token(n + 1)),
			'"end"',
		]);
		// The very same objects: what an edge encodes from them is shared, too.
		expect(batches.every((batch, n) => batch === sent[0]![n])).toBe(true);
	}
	expect(seen.reads).toBe(0);
});

it("I6: a small tail that is cut to free the journal makes no reader read a page either", async () => {
	const tidied = Promise.withResolvers<{ more: boolean; lagging: ReadonlySet<number> }>();
	const { seen, storage } = counted({ tidy: () => tidied.promise });
	const bus = open(storage);
	const writer = await bus.create({ log: "run", kind: "run" }, ['"begin"']);
	const sent = await followers(bus);
	await overload(writer);
	const said = totalOf(sent[0]!);
	seen.reads = 0;
	const { id } = (await inner.find("run"))!;
	await say(writer, token(1));
	await say(writer, token(2));
	expect(totalOf(sent[0]!)).toBeLessThan(said + 2);
	tidied.resolve({ more: false, lagging: new Set([id]) });
	for (let turns = 0; turns < 3; turns++) await turn();
	for (const batches of sent) expect(recordsOf(batches).slice(said)).toEqual([token(1), token(2)]);
	expect(seen.reads).toBe(0);
});
