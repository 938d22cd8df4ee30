/** Continuing a run by way of the inbox: once, delivered to where the message came from, in its session's order (A1). */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { gate, type Play, text, until } from "../../broker/rig.ts";
import { nexRig, telegram } from "./rig.ts";

const engineFields = { continues: true };

/** The first run is cut off; those that continue it wait until they may end. */
function cutOnce(requests: EngineRequest[] = [], open: Promise<void> = Promise.resolve()): Play {
	return async function* (request) {
		requests.push(request);
		yield text(request.continues ? "the rest" : "a begin");
		if (!request.continues && requests.length === 1) throw new Error("cut off");
		await open;
	};
}

/** Which run was delivered where. */
const places = ({ asked }: ReturnType<typeof nexRig>) =>
	asked.map((one) => ("runId" in one ? [one.runId, one.target] : []));

describe("A1: continuing a run", () => {
	test("is a new run for the same messages, delivered as a new message to the same target", async () => {
		const requests: EngineRequest[] = [];
		const rig = nexRig(cutOnce(requests), { engineFields, config: telegram() });
		const { runId: first } = await rig.hear("hello");
		await rig.runSettled(first!);
		const { runId } = await rig.nex.continue(first!);
		await rig.runSettled(runId);
		expect(places(rig)).toEqual([
			[first, { to: "c1" }],
			[runId, { to: "c1" }],
		]);
		expect(rig.launched).toHaveLength(2);
		expect(requests[1]).toMatchObject({
			continues: { runId: first, checkpoint: null, shown: "a begin" },
			messages: [{ role: "user", text: "hello" }],
			sender: { id: "ann", channel: "telegram" },
		});
		expect(rig.look.turn(runId)).toMatchObject({ continues: first, trace: { channel: "telegram", sender: "ann" } });
	});

	test("a second call answers with the same new run: while it begins, while it is live, and after it", async () => {
		const end = gate();
		const rig = nexRig(cutOnce([], end.opened), { engineFields });
		const { runId: first } = await rig.submit({ session: "main", text: "hello" });
		await rig.runSettled(first!);
		const [one, two] = await Promise.all([rig.nex.continue(first!), rig.nex.continue(first!)]);
		expect(two).toEqual(one);
		expect(await rig.nex.continue(first!)).toEqual(one);
		end.open();
		await rig.runSettled(one.runId);
		expect(await rig.nex.continue(first!)).toEqual(one);
		expect(rig.look.turns({ session: "main", limit: 10 })).toHaveLength(2);
	});

	test("a message that comes meanwhile waits behind it; a session that is busy refuses it", async () => {
		const end = gate();
		const rig = nexRig(cutOnce([], end.opened), { engineFields });
		const { runId: first } = await rig.submit({ session: "main", text: "hello" });
		await rig.runSettled(first!);
		const { runId } = await rig.nex.continue(first!);
		const next = await rig.submit({ session: "main", text: "and this?" });
		expect(next.disposition).toEqual({ state: "queued" });
		await expect(rig.nex.continue(runId)).rejects.toMatchObject({ code: "conflict" });
		end.open();
		await rig.runSettled(runId);
		const isStarted = () => rig.look.event(next.eventId)?.disposition.state === "started";
		await until(isStarted, "the message starts");
		const { runId: after } = rig.look.event(next.eventId)!.disposition as { runId: string };
		await rig.runSettled(after);
	});

	test("an engine without checkpoints refuses it in words", async () => {
		const rig = nexRig(cutOnce());
		const { runId } = await rig.submit({ session: "main", text: "hello" });
		await rig.runSettled(runId!);
		await expect(rig.nex.continue(runId!)).rejects.toThrow(/keeps no checkpoints; retry the run instead/);
		await expect(rig.nex.continue("run_x")).rejects.toMatchObject({ code: "not_found" });
	});
});

describe("retrying a run", () => {
	test("is a new run of the same message with any engine, delivered to where it came from", async () => {
		const requests: EngineRequest[] = [];
		const rig = nexRig(cutOnce(requests), { config: telegram() });
		const { runId: first, eventId } = await rig.hear("hello");
		await rig.runSettled(first!);
		const [one, two] = await Promise.all([rig.nex.retry(first!), rig.nex.retry(first!)]);
		expect(two).toEqual(one);
		await rig.runSettled(one.runId);
		expect(places(rig)).toEqual([
			[first, { to: "c1" }],
			[one.runId, { to: "c1" }],
		]);
		const { continues, messages, sender } = requests[1]!;
		expect([continues, sender]).toMatchObject([undefined, { id: "ann", channel: "telegram" }]);
		// The first run stays in the context: its tools may have acted.
		expect(messages).toMatchObject([
			{ role: "user", text: "hello" },
			{ role: "assistant", interrupted: "failed" },
			{ role: "user", text: "hello" },
		]);
		const turn = rig.look.turn(one.runId)!;
		expect([turn.status, turn.continues]).toEqual(["completed", undefined]);
		expect(turn.messages[0]).toMatchObject({ role: "user", text: "hello", eventId });
	});

	test("of a run that continues another answers all that was asked in both", async () => {
		const requests: EngineRequest[] = [];
		const rig = nexRig(
			async function* (request) {
				requests.push(request);
				yield text("a begin");
				if (requests.length < 3) throw new Error("cut off");
			},
			{ engineFields },
		);
		const { runId: first } = await rig.submit({ session: "main", text: "hello" });
		await rig.runSettled(first!);
		const { runId: second } = await rig.nex.continue(first!);
		await rig.runSettled(second);
		const { runId } = await rig.nex.retry(second);
		await rig.runSettled(runId);
		expect(requests[2]!.messages.at(-1)).toEqual({ role: "user", text: "hello" });
		await expect(rig.nex.retry(runId)).rejects.toThrow(/it has completed/);
		await expect(rig.nex.retry(first!)).rejects.toThrow(/continues it already/);
		await expect(rig.nex.retry("run_x")).rejects.toMatchObject({ code: "not_found" });
	});
});
