import { describe, expect, test } from "vitest";
import { until } from "../../broker/rig.ts";
import { nexRig, patient, queueOf, usersOf } from "./rig.ts";

describe("A27: cancelling a message", () => {
	test("that waits: it never starts, and the next one does", async () => {
		const { play, asked, doors } = patient();
		const { submit, nex, look } = nexRig(play);
		const say = (said: string) => submit({ session: "main", text: said, queue: queueOf("followup") });
		await say("one");
		const [two, three] = [await say("two"), await say("three")];
		expect(await nex.cancel(two.eventId)).toMatchObject({ eventId: two.eventId, disposition: { state: "cancelled" } });
		expect(look.event(two.eventId)!.disposition).toEqual({ state: "cancelled" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(() => asked.length === 2);
		expect(usersOf(asked[1]!)).toEqual(["one", "three"]);
		expect(look.event(three.eventId)!.disposition.state).toBe("started");
		doors[1]!.open();
	});

	test("that has started, was cancelled before, or is unknown is refused", async () => {
		const { play, doors } = patient();
		const { submit, nex } = nexRig(play);
		const one = await submit({ session: "main", text: "one", queue: queueOf("followup") });
		const two = await submit({ session: "main", text: "two", queue: queueOf("followup") });
		await expect(nex.cancel(one.eventId)).rejects.toMatchObject({ code: "conflict" });
		await nex.cancel(two.eventId);
		await expect(nex.cancel(two.eventId)).rejects.toMatchObject({ code: "conflict" });
		await expect(nex.cancel("evt_nope")).rejects.toMatchObject({ code: "not_found" });
		await until(() => doors.length === 1);
		doors[0]!.open();
	});

	test("that others wait with leaves them together", async () => {
		const { play, asked, doors } = patient();
		const { submit, nex } = nexRig(play);
		const mode = "collect" as const;
		await submit({ session: "main", text: "one", queue: queueOf("followup") });
		const followup = await submit({ session: "main", text: "two", queue: queueOf("followup") });
		const first = await submit({ session: "main", text: "three", queue: queueOf("followup", { mode, collectMs: 1 }) });
		await submit({ session: "main", text: "four", queue: queueOf("followup", { mode, collectMs: 1 }) });
		await nex.cancel(first.eventId);
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(() => asked.length === 2);
		expect([usersOf(asked[1]!), followup.disposition.state]).toEqual([["one", "two"], "queued"]);
		doors[1]!.open();
		await until(() => asked.length === 3);
		expect(usersOf(asked[2]!)).toEqual(["one", "two", "four"]);
		doors[2]!.open();
	});
});

describe("A27: an interruption that rolls back", () => {
	test("starts over without the stopped turn, which stays on record and says so", async () => {
		const { play, asked, doors } = patient();
		const { submit, look, runSettled } = nexRig(play);
		const zero = await submit({ session: "main", text: "zero" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await runSettled(zero.runId!);
		const one = await submit({ session: "main", text: "one" });
		await until(() => asked.length === 2);
		const two = await submit({ session: "main", text: "two", queue: queueOf("interrupt", { rollback: true }) });
		await until(() => asked.length === 3);
		expect(look.turn(one.runId!)).toMatchObject({
			status: "aborted",
			rolledBack: true,
			messages: [{ text: "one" }, {}],
		});
		expect(usersOf(asked[2]!)).toEqual(["zero", "two"]);
		expect(look.event(one.eventId)!.disposition).toEqual({ state: "superseded", by: two.eventId, runId: one.runId });
		doors[2]!.open();
		await until(() => look.turns({ limit: 9 }).length === 3);
		await submit({ session: "main", text: "three" });
		await until(() => asked.length === 4);
		expect(usersOf(asked[3]!)).toEqual(["zero", "two", "three"]);
		doors[3]!.open();
	});

	test("without it the model sees the stopped turn", async () => {
		const { play, asked, doors } = patient();
		const { submit, look } = nexRig(play);
		const one = await submit({ session: "main", text: "one" });
		await until(() => asked.length === 1);
		await submit({ session: "main", text: "two", queue: queueOf("interrupt") });
		await until(() => asked.length === 2);
		expect(look.turn(one.runId!)!.rolledBack).toBeUndefined();
		expect(usersOf(asked[1]!)).toEqual(["one", "two"]);
		doors[1]!.open();
	});
});
