/** Messages that waited in a dead daemon are answered by the next one. */

import { describe, expect, test } from "vitest";
import { finalEnd, gate, tempFile, text, ticks, until } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { echo, nexRig, silent } from "./rig.ts";

describe("messages that waited when the process died", () => {
	async function left(...texts: string[]) {
		const path = tempFile();
		const dead = nexRig(silent, { path, dies: true });
		const accepted = [];
		for (const said of texts) accepted.push(await dead.nex.receive({ session: "main", text: said }));
		return { path, accepted };
	}

	test("I10: are answered in order, after what was running is settled", async () => {
		const { path } = await left("one", "two", "three");
		const { nex, look } = nexRig(echo, { path });
		expect(await nex.recover()).toEqual({ recovered: 1 });
		await until(() => look.turns({ limit: 9 }).length === 3);
		const turns = look.turns({ limit: 9 }).toReversed();
		expect(turns.map((turn) => [turn.messages[0]?.text, turn.status])).toEqual([
			["one", "failed"],
			["two", "completed"],
			["three", "completed"],
		]);
		const states = look.events({ limit: 9 }).map((event) => event.disposition.state);
		expect(states).toEqual(["started", "started", "started"]);
	});

	test("I7: do not start before the deliveries of the runs before them have begun", async () => {
		const { path, accepted } = await left("one", "two");
		const { nex, look } = nexRig(echo, { path });
		const begun = gate();
		let isAsked = false;
		const recovered = nex.recover(() => {
			isAsked = true;
			return begun.opened;
		});
		await until(() => isAsked);
		// The pending answer is complete.
		expect(look.turn(accepted[0]!.runId!)).toMatchObject({ reason: "crashed" });
		await ticks(20);
		expect(look.event(accepted[1]!.eventId)?.disposition).toEqual({ state: "queued" });
		begun.open();
		expect(await recovered).toEqual({ recovered: 1 });
		await until(() => look.turns({ limit: 9 }).length === 2);
	});

	test("and waited too long are rejected as stale", async () => {
		const { path, accepted } = await left("one", "two");
		const { nex, look } = nexRig(echo, { path, clock: manualClock(Date.now() + 16 * 60_000) });
		await nex.recover();
		expect(look.event(accepted[1]!.eventId)?.disposition).toEqual({ state: "rejected", because: "stale" });
		await ticks(5);
		expect(look.turns({ limit: 9 })).toHaveLength(1);
	});

	test("ST4, ST19: are left by a daemon that was taken for dead, and so is its run: it ends without its own terminal frame", async () => {
		const path = tempFile();
		const ended = gate();
		const before = nexRig(
			async function* () {
				yield text("half");
				await ended.opened;
			},
			{ path, dies: true },
		);
		const one = await before.nex.receive({ session: "main", text: "one" });
		const two = await before.nex.receive({ session: "main", text: "two" });
		await until(async () => (await before.bus.describe(one.runId!))?.head === 2);
		const { nex, look, frames, bus } = nexRig(echo, { path });
		// Once this daemon has joined the store, the earlier one counts as dead, although it keeps running.
		await bus.list({ orphaned: true });
		const over = before.broker.abort(one.runId!);
		ended.open();
		expect(await over).toMatchObject({ status: "failed", error: { code: "unavailable" } });
		await ticks(20);
		expect(look.event(two.eventId)?.disposition).toEqual({ state: "queued" });
		expect(look.turns({ limit: 9 })).toEqual([]);
		expect(await nex.recover()).toEqual({ recovered: 1 });
		await until(() => look.turns({ limit: 9 }).length === 2);
		expect(finalEnd(await frames(one.runId!))).toMatchObject({ reason: "crashed", synthetic: true });
		expect(look.turns({ limit: 1 })[0]).toMatchObject({ status: "completed", messages: [{ text: "two" }, {}] });
	});

	test("ST19: are not taken from a daemon that lives", async () => {
		const { nex, look } = nexRig(silent);
		await nex.receive({ session: "main", text: "one" });
		const two = await nex.receive({ session: "main", text: "two" });
		expect(await nex.recover()).toEqual({ recovered: 0 });
		await ticks(20);
		expect(look.event(two.eventId)?.disposition).toEqual({ state: "queued" });
		expect(look.turns({ limit: 9 })).toEqual([]);
	});
});

test("P1.17: a message that waited keeps the trace it came with", async () => {
	const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
	const ended = gate();
	const { nex, look, frames } = nexRig(async function* () {
		await ended.opened;
		yield text("ok");
	});
	await nex.receive({ session: "main", text: "one" });
	const { eventId } = await nex.receive({ session: "main", text: "next", traceId });
	ended.open();
	await until(() => look.event(eventId)?.disposition.state === "started");
	const { disposition } = look.event(eventId)!;
	const [begin] = await frames((disposition as { runId: string }).runId);
	expect(begin).toMatchObject({ type: "stream.begin", trace_id: traceId });
});
