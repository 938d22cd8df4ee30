/** A store that refuses commits for longer than anybody waits: runs end, and their sessions go on once it takes them again. */

import { expect, test } from "vitest";
import type { Plugin } from "../../../packages/daemon/src/nex/plugins/port.ts";
import {
	finalEnd,
	framesOf,
	gate,
	type Play,
	tempFile,
	text,
	ticks,
	turnWhenSettled,
	until,
	verified,
} from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { echo, nexRig } from "./rig.ts";

function world(path = tempFile(), dies = false, plugins: readonly Plugin[] = []) {
	const clock = manualClock(1000);
	const door = gate();
	const play: Play = async function* (...asked) {
		yield* echo(...asked);
		await door.opened;
		yield text(" and more");
	};
	const parts = nexRig(play, { path, clock, busClock: clock, dies, connection: "none", plugins });
	const disk = { full: false };
	const { file } = parts;
	const transaction = file.transaction.bind(file);
	file.transaction = (work) => {
		if (disk.full) throw new Error("database or disk is full");
		return transaction(work);
	};
	const pass = async (ms: number) => {
		for (let past = 0; past < ms; past += 250) {
			clock.advance(250);
			await ticks(2);
		}
	};
	const submit = (said: string) => parts.nex.receive({ session: "main", text: said });
	/** A run whose first words are on record. */
	const begin = async () => {
		const runId = (await submit("one")).runId!;
		await until(async () => (await parts.bus.describe(runId))?.head === 2);
		return runId;
	};
	return { ...parts, clock, disk, door, pass, submit, begin, path };
}

/** A start on a full disk after a process that died with one message running and one waiting. */
async function foundOnFullDisk() {
	const dead = world(tempFile(), true);
	const runId = await dead.begin();
	const { eventId } = await dead.submit("two");
	const next = world(dead.path);
	next.door.open();
	next.disk.full = true;
	const recovered = next.nex.recover();
	await next.pass(35_000);
	expect(await recovered).toEqual({ recovered: 0 });
	next.disk.full = false;
	return { ...next, runId, eventId };
}

test("I3, P4.9: the run is settled with what is durable, and what waited behind it is answered", async () => {
	const { disk, look, bus, broker, door, pass, submit, begin } = world();
	const runId = await begin();
	const second = await submit("two");
	expect(second.disposition).toEqual({ state: "queued" });
	disk.full = true;
	door.open();
	const stopped = broker.abort(runId);
	await pass(31_000);
	expect(await stopped).toMatchObject({ status: "failed", error: { code: "unavailable" } });
	expect(broker.unsaved).toBe(1);
	expect(look.turn(runId)).toBeUndefined();
	await pass(6_000);
	expect(broker.unsaved).toBe(1);
	disk.full = false;
	await pass(6_000);
	expect(await turnWhenSettled(look, runId)).toMatchObject({
		status: "failed",
		reason: "error",
		error: { code: "unavailable" },
		messages: [{ text: "one" }, { text: "re one" }],
	});
	const log = await framesOf(bus, runId);
	expect(verified(log)).toBeUndefined();
	expect(finalEnd(log)).toMatchObject({ reason: "error", synthetic: true, error: { code: "unavailable" } });
	await until(() => look.turns({ limit: 9 }).length === 2);
	expect(look.turns({ limit: 1 })[0]).toMatchObject({ status: "completed", messages: [{ text: "two" }, {}] });
	expect(broker.unsaved).toBe(0);
});

test("a daemon that stops meanwhile does not wait for the disk; the next one settles the run", async () => {
	const { disk, look, broker, nex, door, pass, begin, path } = world(tempFile(), true);
	const runId = await begin();
	disk.full = true;
	door.open();
	await ticks(4);
	await pass(31_000);
	nex.close();
	await broker.drain(1000);
	disk.full = false;
	await pass(20_000);
	expect(look.turn(runId)).toBeUndefined();
	const next = world(path);
	expect(await next.nex.recover()).toEqual({ recovered: 1 });
	expect(next.look.turn(runId)).toMatchObject({ reason: "crashed" });
});

test("I3: a start on a full disk settles what it found as soon as there is room, and the session waits for that", async () => {
	const { look, pass, runId } = await foundOnFullDisk();
	await pass(12_000);
	expect(await turnWhenSettled(look, runId)).toMatchObject({ status: "failed", reason: "crashed" });
	await until(() => look.turns({ limit: 9 }).length === 2);
	expect(look.turns({ limit: 1 })[0]!.messages.at(-1)).toMatchObject({ text: "re two and more" });
});

test("I3: a session does not wait forever for a run whose log has ended without a turn", async () => {
	const { look, pass, bus, runId, eventId } = await foundOnFullDisk();
	await (await bus.reopen(runId)).seal([]);
	await pass(12_000);
	await until(() => look.event(eventId)!.disposition.state === "started");
	expect(look.turn(runId)).toBeUndefined();
	await until(() => look.turns({ limit: 9 }).length === 1);
});

test("I10: while the store refuses writes no message is accepted: the sender gets an error within a second", async () => {
	const { disk, look, pass, submit } = world();
	await submit("one");
	disk.full = true;
	const refused = expect(submit("two")).rejects.toMatchObject({ code: "unavailable" });
	await pass(1_500);
	await refused;
	disk.full = false;
	await pass(500);
	expect(look.events({ limit: 9 })).toHaveLength(1);
	const sent = submit("two");
	expect((await sent).disposition).toEqual({ state: "queued" });
});

/** While a message is prepared, the disk is as the test says. */
function preparing() {
	const asked: string[] = [];
	const held = gate();
	const plugin: Plugin = {
		name: "prepares",
		async onPrepare({ event }) {
			asked.push(event.text);
			await held.opened;
			return event.text === "bad" ? { reject: "not today" } : undefined;
		},
	};
	return { asked, held, parts: world(tempFile(), false, [plugin]) };
}

test("I10: a message on record whose run cannot begin now waits, its sender gets an answer in time, and it is answered later", async () => {
	const { asked, held, parts } = preparing();
	const { disk, look, door, pass, submit, clock } = parts;
	const first = submit("one");
	await until(() => asked.length === 1);
	disk.full = true;
	held.open();
	const begun = clock.now();
	let told = 0;
	void first.then(() => {
		told = clock.now();
	});
	await pass(3_000);
	const { eventId, disposition } = await first;
	expect(disposition).toEqual({ state: "queued" });
	expect(told - begun).toBeLessThanOrEqual(2_000);
	// No other message of the session waits for it any longer either.
	const refused = expect(submit("two")).rejects.toMatchObject({ code: "unavailable" });
	await pass(1_500);
	await refused;
	disk.full = false;
	door.open();
	const second = submit("three");
	await pass(500);
	expect((await second).disposition).toEqual({ state: "queued" });
	await pass(40_000);
	await until(() => look.turns({ limit: 9 }).length === 2);
	const answered = look.turns({ limit: 9 }).toReversed();
	expect(answered.map(({ messages }) => messages[0]!.text)).toEqual(["one", "three"]);
	expect(look.event(eventId)!.disposition.state).toBe("started");
});

test("I10: a rejection that cannot be recorded now is recorded later", async () => {
	const { asked, held, parts } = preparing();
	const { disk, look, pass, submit } = parts;
	const sent = submit("bad");
	await until(() => asked.length === 1);
	disk.full = true;
	held.open();
	await pass(2_000);
	const { eventId, disposition } = await sent;
	expect(disposition).toEqual({ state: "queued" });
	disk.full = false;
	await pass(6_000);
	await until(() => look.event(eventId)!.disposition.state === "rejected");
	expect(look.event(eventId)!.disposition).toMatchObject({ because: "not today" });
});

test("I10: a recorded message at a stop is left to the next daemon, and its sender need not send it again", async () => {
	const { asked, held, parts } = preparing();
	const sent = parts.submit("one");
	await until(() => asked.length === 1);
	parts.nex.close();
	held.open();
	const { eventId, disposition } = await sent;
	expect(disposition).toEqual({ state: "queued" });
	expect(parts.look.event(eventId)!.disposition).toEqual({ state: "queued" });
});
