/** The way of deliveries' changes to the store: one committer, in order, nothing lost, and nothing allowed before it is durable. */

import { describe, expect, it } from "vitest";
import type { AdapterInfo, StreamLine } from "../../../packages/adapter/src/port.ts";
import { type Bus, sqliteStorage } from "../../../packages/daemon/src/bus/bus.ts";
import { createRatePause } from "../../../packages/daemon/src/nex/accounts/platform-health.ts";
import { deliverBySend } from "../../../packages/daemon/src/nex/delivery/blocks/send-delivery.ts";
import type { DeliveryContext } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import { StreamReports } from "../../../packages/daemon/src/nex/delivery/stream/stream-reports.ts";
import { OUTBOUND_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { NexusError, Refused } from "../../../packages/protocol/src/protocol.ts";
import { expireAll } from "../../bus/remove.ts";
import { manualClock } from "../../clock.ts";
import { openPlainStore } from "../../store.ts";
import { until } from "../../until.ts";
import { trackDelivery } from "./live-delivery-rig.ts";
import { finishedRun } from "./rig.ts";

/** Enough turns for everything that does not wait for the store. */
async function turns(): Promise<void> {
	for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
}

/** A store whose commits take as long as the test says. */
function slowly() {
	const { promise, resolve: release } = Promise.withResolvers<void>();
	const asked: string[][] = [];
	const write =
		(write: Bus["write"]): Bus["write"] =>
		async (writes) => {
			asked.push(writes.map(({ op }) => op));
			await promise;
			await write(writes);
		};
	return { write, asked, release };
}

/** Refuses the given number of writes, then accepts everything. */
function refusing(causes: Error[]) {
	const asked: string[][] = [];
	const write =
		(write: Bus["write"]): Bus["write"] =>
		async (writes) => {
			asked.push(writes.map(({ op }) => op));
			const cause = causes.shift();
			if (cause !== undefined) throw cause;
			await write(writes);
		};
	return { write, asked };
}

const full = () => new NexusError("unavailable", "the disk is full");

describe("an intent in flight", () => {
	it("I7, ST4: a stream's message is not allowed before its intent is durable", async () => {
		const { write, asked, release } = slowly();
		const { live, stored } = await trackDelivery({ write });
		const info = { fields: ["runId", "offset", "intent"] } as unknown as AdapterInfo;
		const written: StreamLine[] = [];
		const reports = new StreamReports({ live, info, log: silentLog } as unknown as DeliveryContext, {
			write(line) {
				// The message that the platform may show is on record.
				expect(stored().messages).toMatchObject([{ nonce: "n1", state: "intended" }]);
				written.push(line);
			},
			message() {},
		});
		reports.take({ type: "message_creating", nonce: "n1", from: 0, ordinal: 1 });
		await turns();
		expect(asked).toEqual([["put"]]);
		expect(written).toEqual([]);
		release();
		await until("the ack is written", () => written.length > 0);
		expect(written).toMatchObject([{ type: "ack", nonce: "n1" }]);
	});

	it("I7, ST4: nothing is sent before what it says is durable", async () => {
		const store = openPlainStore(":memory:");
		const runId = await finishedRun(store.bus, ["hello"]);
		const { write, asked, release } = slowly();
		const clock = manualClock(1000);
		const { live, stored } = await trackDelivery({ store, write, runId, clock });
		const sends: unknown[] = [];
		const request = async (line: object) => {
			expect(stored().messages).toMatchObject([{ state: "intended", text: "hello" }]);
			sends.push(line);
			return { type: "sent", messageId: "m1" };
		};
		const info = { supports: ["send"], fields: ["runId"], limits: { textMax: 100, unit: "utf16" } };
		const work = deliverBySend({
			live,
			info,
			bus: store.bus,
			clock,
			log: silentLog,
			random: () => 0.5,
			limits: OUTBOUND_LIMITS,
			target: { to: "c" },
			signal: new AbortController().signal,
			options: {},
			reasoning: false,
			parts: true,
			files: new Map(),
			account: { config: {}, streaming: {}, rate: createRatePause(clock), send: () => ({ request, typing() {} }) },
		} as unknown as DeliveryContext);
		await until("the intent is on its way", () => asked.length > 0);
		await turns();
		expect(sends).toEqual([]);
		release();
		expect(await work).toEqual({ state: "complete" });
		await live.recorded();
		expect(stored().messages).toMatchObject([{ state: "sent", messageId: "m1" }]);
		await store.close();
	});

	it("I7: one that the store refuses for good is never taken for durable", async () => {
		const { write } = refusing([new Refused("conflict", "it does not fit")]);
		const { live, stored } = await trackDelivery({ write });
		live.intend({ ordinal: 1, nonce: "n1", from: 0 });
		await expect(live.recorded()).rejects.toThrow("it does not fit");
		expect(stored().messages).toEqual([]);
	});
});

describe("changes of a delivery", () => {
	it("ST5: those of one tick are one commit, of however many deliveries", async () => {
		const { live, bus, stored } = await trackDelivery();
		const before = bus.stats.commits;
		live.setMode("blocks");
		live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 5, text: "hello" });
		live.sent("n1", { messageId: "m1", to: 5 });
		await live.recorded();
		expect(bus.stats.commits - before).toBe(1);
		expect(stored()).toEqual(live.row);
	});

	it("ST4: a change that the Bus gave up is written again, and later changes do not overtake it", async () => {
		const clock = manualClock(1000);
		const { write, asked } = refusing([full(), full()]);
		const { live, stored } = await trackDelivery({ write, clock });
		live.intend({ ordinal: 1, nonce: "n1", from: 0 });
		await until("it is refused", () => asked.length === 1);
		live.created("n1", "m1");
		live.shown("n1", 3);
		await turns();
		expect(asked).toHaveLength(1);
		clock.advance(250);
		await until("it is refused again", () => asked.length === 2);
		await turns();
		clock.advance(500);
		await live.recorded();
		expect(asked).toEqual([["put"], ["put"], ["put"], ["put", "put"]]);
		expect(stored()).toEqual(live.row);
	});

	it("ST2: a change that does not fit is logged and skipped; the others of its tick are stored", async () => {
		const told: object[] = [];
		const log = { ...silentLog, error: (facts: object) => told.push(facts) };
		const { live, bus, stored } = await trackDelivery({ log });
		live.intend({ ordinal: 1, nonce: "n1", from: 0 });
		live.intend({ ordinal: 2, nonce: "n2", from: 0 });
		await live.recorded();
		// Memory and store differ, as after an unforeseen fault.
		await bus.write([{ table: "deliveries", op: "drop", args: ["d", "n1", 1] }]);
		live.withdraw("n1");
		live.created("n2", "m2");
		await live.recorded();
		expect(told).toMatchObject([{ delivery: "d", err: { refusal: "conflict" } }]);
		expect(stored().messages).toMatchObject([{ nonce: "n2", state: "open", messageId: "m2" }]);
	});

	it("ST19: a fenced daemon writes nothing any more, and awaiters get an error", async () => {
		const { write, asked } = refusing([]);
		const store = openPlainStore(":memory:");
		const { live, records, stored } = await trackDelivery({ store, write });
		await expireAll(sqliteStorage(store.file));
		live.setMode("stream");
		await expect(live.recorded()).rejects.toMatchObject({ refusal: "fenced" });
		expect(live.lost.aborted).toBe(true);
		live.finish("complete", undefined);
		await expect(live.recorded()).rejects.toMatchObject({ refusal: "fenced" });
		await records.settled();
		expect(asked).toEqual([["setMode"]]);
		expect(stored()).toMatchObject({ state: "active" });
	});

	it("ST16: what waits when the process has to end goes to the Bus in the tick of the call", async () => {
		const { live, records, bus, stored } = await trackDelivery();
		live.setMode("stream");
		await turns();
		live.intend({ ordinal: 1, nonce: "n1", from: 0 });
		records.push();
		bus.flush();
		expect(stored().messages).toMatchObject([{ nonce: "n1" }]);
	});

	it("ST16: so does what the store has not taken so far, before what came after it", async () => {
		const { write, asked } = refusing([full()]);
		const { live, records, bus, stored } = await trackDelivery({ write });
		live.intend({ ordinal: 1, nonce: "n1", from: 0 });
		await until("it is refused", () => asked.length === 1);
		await turns();
		live.created("n1", "m1");
		records.push();
		bus.flush();
		expect(asked).toEqual([["put"], ["put"], ["put"]]);
		expect(stored().messages).toMatchObject([{ nonce: "n1", messageId: "m1" }]);
	});

	it("I12: a store that does not come back is not waited for when the process stops", async () => {
		const clock = manualClock(1000);
		const { write, asked } = refusing([full(), full()]);
		const { live, records } = await trackDelivery({ write, clock });
		live.setMode("stream");
		await until("it is refused", () => asked.length === 1);
		records.close();
		clock.advance(60_000);
		await turns();
		expect(asked).toHaveLength(1);
	});
});

it("I7: a failure reported before the message's own answer waits for it", async () => {
	const { live, stored } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" });
	live.failed("n1", { messageId: "m1", error: "no phone" });
	expect(live.unfinished).toMatchObject({ nonce: "n1", state: "intended" });
	live.sent("n1", { messageId: "m1", to: 3 });
	await live.recorded();
	expect(live.unfinished).toBeUndefined();
	expect(stored()).toEqual(live.row);
	expect(live.row.messages).toMatchObject([{ state: "failed", error: "no phone", messageId: "m1" }]);
});

it("I7: the range of a message that was announced complete is given back after a crash", async () => {
	const { live, again } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 42 });
	await live.recorded();
	expect(again().resume()).toEqual({ position: 0, ordinal: 1, uncertain: { nonce: "n1", to: 42 } });
});

it("I7: the cursor moves only when a message is finished, and never back; its text is kept until then", async () => {
	const { live, stored } = await trackDelivery();
	live.intend({ ordinal: 1, nonce: "n1", from: 0, to: 9, text: "one", done: 1 });
	live.intend({ ordinal: 2, nonce: "n2", from: 0 });
	live.created("n2", "m2");
	live.shown("n2", 7);
	await live.recorded();
	expect(stored()).toMatchObject({
		cursor: 0,
		messages: [
			{ text: "one", done: 1 },
			{ state: "open", shown: 7, edits: 1 },
		],
	});
	live.sent("n1", { messageId: "m1", to: 9, carry: "```" });
	live.sent("n2", { messageId: "m2", to: 3 });
	await live.recorded();
	expect(stored()).toEqual(live.row);
	expect(live.row).toMatchObject({
		cursor: 9,
		messages: [
			{ state: "sent", to: 9 },
			{ state: "sent", to: 3, edits: 2 },
		],
	});
	expect(stored().carry).toBeUndefined();
	expect(stored().messages[0]).not.toHaveProperty("text", "one");
});

it("I7: a message that exists is not withdrawn; one in doubt is intended again under its place when it is announced again", async () => {
	const { live, stored } = await trackDelivery();
	for (const nonce of ["n1", "n2", "n3"]) live.intend({ ordinal: 1, nonce, from: 0 });
	live.created("n1", "m1");
	live.withdraw("n1");
	live.withdraw("n2");
	live.doubt("n3");
	live.intend({ ordinal: 1, nonce: "n3", from: 0, to: 4, text: "two!" });
	await live.recorded();
	expect(stored()).toEqual(live.row);
	expect(live.row.messages).toMatchObject([
		{ ordinal: 1, nonce: "n1", state: "open" },
		{ ordinal: 3, nonce: "n3", state: "intended", text: "two!" },
	]);
	live.remove("n1");
	expect(live.row.messages).toHaveLength(1);
});
