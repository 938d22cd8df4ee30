import { describe, expect, test } from "vitest";
import type { Bus } from "../../packages/daemon/src/bus/bus.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { createFold, type Frame } from "../../packages/protocol/src/protocol.ts";
import { turnOf } from "../ledger/rig.ts";
import {
	ask,
	finalEnd,
	framesOf,
	type Play,
	rig,
	tempFile,
	text,
	turnWhenSettled,
	until,
	verified,
	yieldsThenWaits,
} from "./rig.ts";

const echo: Play = async function* ({ messages }) {
	yield text(`you said ${messages.at(-1)?.text}`);
};

/** A process that dies: its objects are simply left, with nothing closed. */
async function crash(path: string, play: Play, work: (dead: ReturnType<typeof rig>) => Promise<void>): Promise<void> {
	await work(rig(play, { path, dies: true }));
}

const visible = async (bus: Bus, runId: string, count: number): Promise<Frame[]> => {
	await until(async () => (await bus.describe(runId))!.head >= count, `${count} records of ${runId}`);
	return framesOf(bus, runId);
};

const seen = (frames: readonly Frame[]) => {
	const fold = createFold();
	for (const frame of frames) fold.push(frame);
	return fold.view();
};

describe("a run that was live when the process died", () => {
	const play: Play = yieldsThenWaits(
		{ type: "reasoning", delta: "hm" },
		text("Let me look."),
		{ type: "tool", callId: "c1", name: "look", status: "completed", args: { a: 1 }, result: "seen" },
		{ type: "message" },
		text("It is "),
		{ type: "part", modality: "card", contentType: "application/json", payload: "{}" },
		{ type: "tool", callId: "c2", name: "wait", status: "started" },
	);
	const records = 15;

	test("I3, I5: gets its ends and a failed turn with what was said, once", async () => {
		const path = tempFile();
		let runId = "";
		let eventId = "";
		let before: Frame[] = [];
		await crash(path, play, async ({ bus, broker }) => {
			const accepted = await ask(broker, "main", "question");
			({ runId, eventId } = accepted);
			before = await visible(bus, runId, records);
		});
		const { broker, look, frames, bus } = rig(echo, { path });
		expect(await broker.recover()).toMatchObject({ recovered: 1 });
		const log = await frames(runId);
		expect(log.slice(0, before.length)).toEqual(before);
		expect(verified(log)).toBeUndefined();
		expect(finalEnd(log)).toMatchObject({ reason: "crashed", synthetic: true, error: { code: "crashed" } });
		expect(seen(log).messages.map((message) => message.text)).toEqual(["Let me look.", "It is "]);
		expect(look.turn(runId)).toMatchObject({
			session: "main",
			engine: "played",
			status: "failed",
			reason: "crashed",
			error: { code: "crashed" },
			messages: [
				{ role: "user", text: "question", eventId },
				{ role: "assistant", text: "Let me look." },
				{ role: "assistant", text: "It is " },
			],
			toolCalls: [
				{ callId: "c1", status: "completed", args: '{"a":1}', result: '"seen"', message: 1 },
				{ callId: "c2", status: "failed", summary: "the process ended", message: 2 },
			],
		});
		expect((await bus.describe(runId))?.sealedAt).toBeDefined();
		expect(await broker.recover()).toMatchObject({ recovered: 0 });
	});

	test("its session continues, and the model reads it", async () => {
		const path = tempFile();
		await crash(path, play, async ({ bus, broker }) => {
			const { runId } = await ask(broker, "main", "question");
			await visible(bus, runId, records);
		});
		let seen: readonly { text: string }[] = [];
		const { broker, look } = rig(
			async function* ({ messages }) {
				seen = messages;
				yield text("on we go");
			},
			{ path },
		);
		await broker.recover();
		const { runId } = await ask(broker, "main", "again");
		await turnWhenSettled(look, runId);
		expect(seen.map((message) => message.text)).toEqual([
			...["question", "Let me look."],
			"It is \n\n[Shown with this answer: card (application/json), 2 bytes]\n\n[This answer failed before it was complete.]",
			"again",
		]);
	});

	test("a turn that is saved already is not saved twice", async () => {
		const path = tempFile();
		let runId = "";
		await crash(path, play, async ({ bus, broker }) => {
			runId = (await ask(broker, "main", "question")).runId;
			await visible(bus, runId, records);
			await bus.write([turnWrites.settle(turnOf(runId))]);
		});
		const { broker, look, frames } = rig(echo, { path });
		expect(await broker.recover()).toMatchObject({ recovered: 1 });
		expect(look.turn(runId)?.status).toBe("completed");
		expect(verified(await frames(runId))).toBeUndefined();
	});

	test("a log without frames, and one between two messages, end well-framed too", async () => {
		const path = tempFile();
		const meta = { session: "main", engine: "played", startedAt: 5, events: [{ eventId: "evt_lost" }] };
		await crash(path, echo, async ({ bus, broker }) => {
			await bus.create({ log: "run_empty", kind: "run", meta }, []);
			const { runId } = await ask(broker, "other", "x");
			await visible(bus, runId, 3);
			const whole = await framesOf(bus, runId);
			const between = whole.map((frame) => JSON.stringify(frame).replaceAll(runId, "run_between"));
			between.splice(2, 1, between[2]!.replace('"final":true', '"final":false'));
			await bus.create({ log: "run_between", kind: "run", meta }, between);
		});
		const { broker, look, frames } = rig(echo, { path });
		expect(await broker.recover()).toMatchObject({ recovered: 2 });
		for (const runId of ["run_empty", "run_between"]) {
			expect(verified(await frames(runId))).toBeUndefined();
			expect(look.turn(runId)).toMatchObject({ status: "failed", startedAt: 5 });
		}
		expect(await frames("run_empty")).toHaveLength(2);
	});

	test("a damaged record is logged; the run ends, and so does every other", async () => {
		const path = tempFile();
		let runId = "";
		await crash(path, play, async ({ bus, broker }) => {
			await bus.create({ log: "run_bad", kind: "run", meta: { session: "x", engine: "e", startedAt: 1, events: [] } }, [
				"no frame",
			]);
			runId = (await ask(broker, "main", "question")).runId;
			await visible(bus, runId, records);
		});
		const logged: object[] = [];
		const { broker, look, frames } = rig(echo, { path, log: { ...silentLog, error: (facts) => logged.push(facts) } });
		expect(await broker.recover()).toMatchObject({ recovered: 2 });
		expect(logged).toMatchObject([{ runId: "run_bad", damage: expect.stringContaining("not JSON") }]);
		for (const id of [runId, "run_bad"]) expect(look.turn(id)?.status).toBe("failed");
		expect(finalEnd(await frames(runId)).reason).toBe("crashed");
	});
});
