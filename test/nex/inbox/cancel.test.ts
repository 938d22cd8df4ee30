import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import type { QueueSettings } from "../../../packages/daemon/src/ledger/inbox/port.ts";
import { gate, type Play, text, until } from "../../broker/rig.ts";
import { nexRig } from "./rig.ts";

const queueOf = (fields: Partial<QueueSettings> = {}): QueueSettings => ({
	mode: "followup",
	collectMs: 100,
	messagesMax: 10,
	atCap: "drop_newest",
	...fields,
});

function patient() {
	const asked: EngineRequest[] = [];
	const doors: ReturnType<typeof gate>[] = [];
	const play: Play = async function* (request, signal) {
		const door = gate();
		asked.push(request);
		doors.push(door);
		yield text("half ");
		const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
		await Promise.race([door.opened, stopped]);
	};
	return { play, asked, doors };
}

const usersOf = (request: EngineRequest) =>
	request.messages.filter(({ role }) => role === "user").map((message) => message.text);

describe("A27: cancelling a message", () => {
	test("that waits: it never starts, and the next one does", async () => {
		const { play, asked, doors } = patient();
		const { submit, nex, look } = nexRig(play);
		const say = (said: string) => submit({ session: "main", text: said, queue: queueOf() });
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
		const one = await submit({ session: "main", text: "one", queue: queueOf() });
		const two = await submit({ session: "main", text: "two", queue: queueOf() });
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
		await submit({ session: "main", text: "one", queue: queueOf() });
		const followup = await submit({ session: "main", text: "two", queue: queueOf() });
		const first = await submit({ session: "main", text: "three", queue: queueOf({ mode, collectMs: 1 }) });
		await submit({ session: "main", text: "four", queue: queueOf({ mode, collectMs: 1 }) });
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
		const two = await submit({ session: "main", text: "two", queue: queueOf({ mode: "interrupt", rollback: true }) });
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
		await submit({ session: "main", text: "two", queue: queueOf({ mode: "interrupt" }) });
		await until(() => asked.length === 2);
		expect(look.turn(one.runId!)!.rolledBack).toBeUndefined();
		expect(usersOf(asked[1]!)).toEqual(["one", "two"]);
		doors[1]!.open();
	});
});
