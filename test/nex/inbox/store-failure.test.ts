/** A store that refuses commits for longer than anybody waits: runs end, and their sessions go on once it takes them again. */

import { expect, onTestFinished, test } from "vitest";
import { createBroker } from "../../../src/broker/broker.ts";
import { createBus, memoryStorage } from "../../../src/bus/bus.ts";
import type { Storage } from "../../../src/bus/storage.ts";
import { sqliteLedger } from "../../../src/ledger/ledger.ts";
import { manualClock } from "../../../src/std/clock.ts";
import { openSqlite } from "../../../src/std/sqlite.ts";
import { engineOf, finalEnd, framesOf, gate, ticks, turnWhenSettled, until, verified } from "../../broker/rig.ts";

function world() {
	const disk = { full: false };
	const inner = memoryStorage();
	const storage: Storage = {
		...inner,
		commit(work) {
			if (disk.full) throw new Error("database or disk is full");
			inner.commit(work);
		},
	};
	const clock = manualClock(1000);
	const file = openSqlite(":memory:", "process");
	const ledger = sqliteLedger(file);
	const bus = createBus({ storage, clock });
	const door = gate();
	const engine = engineOf(async function* ({ messages }) {
		yield { type: "text", delta: `re ${messages.at(-1)!.text}` };
		await door.opened;
		yield { type: "text", delta: " and more" };
	});
	const broker = createBroker({ bus, ledger, clock, engine });
	onTestFinished(async () => {
		await bus.close();
		file.close();
	});
	const pass = async (ms: number) => {
		for (let past = 0; past < ms; past += 250) {
			clock.advance(250);
			await ticks(2);
		}
	};
	return { disk, clock, ledger, bus, broker, door, pass };
}

test("I3, P4.9: the run is settled with what is durable, and what waited behind it is answered", async () => {
	const { disk, ledger, bus, broker, door, pass } = world();
	const { runId } = await broker.submit({ session: "main", text: "one" });
	await until(async () => (await bus.describe(runId!))?.head === 2);
	disk.full = true;
	door.open();
	const stopped = broker.abort(runId!);
	await pass(31_000);
	expect(await stopped).toMatchObject({ status: "failed", error: { code: "unavailable" } });
	expect(broker.unsaved).toBe(1);
	expect(ledger.turn(runId!)).toBeUndefined();
	await pass(6_000);
	expect(broker.unsaved).toBe(1);
	const second = await broker.submit({ session: "main", text: "two" });
	expect(second.disposition).toEqual({ state: "queued" });
	disk.full = false;
	await pass(6_000);
	expect(await turnWhenSettled(ledger, runId!)).toMatchObject({
		...{ status: "failed", reason: "error", error: { code: "unavailable" } },
		messages: [{ text: "one" }, { text: "re one" }],
	});
	const log = await framesOf(bus, runId!);
	expect(verified(log)).toBeUndefined();
	expect(finalEnd(log)).toMatchObject({ reason: "error", synthetic: true, error: { code: "unavailable" } });
	await until(() => ledger.turns({ limit: 9 }).length === 2);
	expect(ledger.turns({ limit: 1 })[0]).toMatchObject({ status: "completed", messages: [{ text: "two" }, {}] });
	expect(broker.unsaved).toBe(0);
});

test("a daemon that stops meanwhile does not wait for the disk; the next one settles the run", async () => {
	const { disk, ledger, bus, broker, door, pass, clock } = world();
	const { runId } = await broker.submit({ session: "main", text: "one" });
	await until(async () => (await bus.describe(runId!))?.head === 2);
	disk.full = true;
	door.open();
	await ticks(4);
	await pass(31_000);
	await broker.drain(1000);
	disk.full = false;
	await pass(20_000);
	expect(ledger.turn(runId!)).toBeUndefined();
	const next = createBroker({ bus, ledger, clock, engine: engineOf(async function* () {}) });
	expect(await next.recover()).toEqual({ recovered: 1 });
	expect(ledger.turn(runId!)).toMatchObject({ reason: "crashed" });
});

test("I3: a start on a full disk settles what it found as soon as there is room, and the session waits for that", async () => {
	const { disk, ledger, bus, broker, clock, pass } = world();
	const { runId } = await broker.submit({ session: "main", text: "one" });
	await until(async () => (await bus.describe(runId!))?.head === 2);
	disk.full = true;
	const echo = engineOf(async function* ({ messages }) {
		yield { type: "text", delta: `re ${messages.at(-1)!.text}` };
	});
	const next = createBroker({ bus, ledger, clock, engine: echo });
	const recovered = next.recover();
	await pass(31_000);
	expect(await recovered).toEqual({ recovered: 0 });
	const second = await next.submit({ session: "main", text: "two" });
	expect(second.disposition).toEqual({ state: "queued" });
	disk.full = false;
	await pass(6_000);
	expect(await turnWhenSettled(ledger, runId!)).toMatchObject({ status: "failed", reason: "crashed" });
	await until(() => ledger.turns({ limit: 9 }).length === 2);
	expect(ledger.turns({ limit: 1 })[0]!.messages.at(-1)).toMatchObject({ text: "re two" });
});
