import { describe, expect, test } from "vitest";
import { createBroker } from "../../src/broker/broker.ts";
import { createBus, sqliteStorage } from "../../src/bus/bus.ts";
import { sqliteLedger } from "../../src/ledger/ledger.ts";
import { createFold, type Frame } from "../../src/protocol/protocol.ts";
import { manualClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { openSqlite } from "../../src/std/sqlite.ts";
import {
	engineOf,
	finalEnd,
	framesOf,
	never,
	type Play,
	rig,
	tempFile,
	text,
	ticks,
	turnWhenSettled,
	until,
	verified,
} from "./rig.ts";

const echo: Play = async function* ({ messages }) {
	yield text(`you said ${messages.at(-1)?.text}`);
};

/** A process that dies: its objects are simply left, with nothing closed. */
async function crash(path: string, play: Play, work: (dead: Dead) => Promise<void>): Promise<void> {
	const file = openSqlite(path, "process");
	const bus = createBus({ storage: sqliteStorage(file) });
	const ledger = sqliteLedger(file);
	const broker = createBroker({ bus, ledger, engine: engineOf(play) });
	await work({ bus, ledger, broker });
}
type Dead = Pick<ReturnType<typeof rig>, "bus" | "ledger" | "broker">;

const visible = async (bus: Dead["bus"], runId: string, count: number): Promise<Frame[]> => {
	await until(async () => (await bus.describe(runId))!.head >= count, `${count} records of ${runId}`);
	return framesOf(bus, runId);
};

const seen = (frames: readonly Frame[]) => {
	const fold = createFold();
	for (const frame of frames) fold.push(frame);
	return fold.view();
};

describe("a run that was live when the process died", () => {
	const play: Play = async function* () {
		yield { type: "reasoning", delta: "hm" };
		yield text("Let me look.");
		yield { type: "tool", callId: "c1", name: "look", status: "completed", args: { a: 1 }, result: "seen" };
		yield { type: "message" };
		yield text("It is ");
		yield { type: "part", modality: "card", contentType: "application/json", payload: "{}" };
		yield { type: "tool", callId: "c2", name: "wait", status: "started" };
		await never;
	};
	const records = 15;

	test("I3, I5: gets its ends and a failed turn with what was said, once", async () => {
		const path = tempFile();
		let runId = "";
		let eventId = "";
		let before: Frame[] = [];
		await crash(path, play, async ({ bus, broker }) => {
			const accepted = await broker.submit({ session: "main", text: "question" });
			[runId, eventId] = [accepted.runId!, accepted.eventId];
			before = await visible(bus, runId, records);
		});
		const { broker, ledger, frames, bus } = rig(echo, { path });
		expect(await broker.recover()).toEqual({ recovered: 1 });
		const log = await frames(runId);
		expect(log.slice(0, before.length)).toEqual(before);
		expect(verified(log)).toBeUndefined();
		expect(finalEnd(log)).toMatchObject({ reason: "crashed", synthetic: true, error: { code: "crashed" } });
		expect(seen(log).messages.map((message) => message.text)).toEqual(["Let me look.", "It is "]);
		expect(ledger.turn(runId)).toMatchObject({
			...{ session: "main", engine: "played", status: "failed", reason: "crashed", error: { code: "crashed" } },
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
		expect(await broker.recover()).toEqual({ recovered: 0 });
	});

	test("its session goes on, and the model is told", async () => {
		const path = tempFile();
		await crash(path, play, async ({ bus, broker }) => {
			const { runId } = await broker.submit({ session: "main", text: "question" });
			await visible(bus, runId!, records);
		});
		let seen: readonly { text: string }[] = [];
		const { broker, ledger } = rig(
			async function* ({ messages }) {
				seen = messages;
				yield text("on we go");
			},
			{ path },
		);
		await broker.recover();
		const { runId } = await broker.submit({ session: "main", text: "again" });
		await turnWhenSettled(ledger, runId!);
		expect(seen.map((message) => message.text)).toEqual([
			...["question", "Let me look."],
			"It is \n\n[Shown with this answer: card (application/json), 2 bytes]\n\n[This answer failed before it was complete.]",
			"again",
		]);
	});

	test("a turn that is saved already is not saved twice", async () => {
		const path = tempFile();
		let runId = "";
		await crash(path, play, async ({ bus, broker, ledger }) => {
			runId = (await broker.submit({ session: "main", text: "question" })).runId!;
			await visible(bus, runId, records);
			ledger.settle({
				...{
					runId,
					session: "main",
					engine: "played",
					status: "completed",
					reason: "completed",
					startedAt: 1,
					endedAt: 2,
				},
				...{ usage: { input: 1, output: 1 }, messages: [], toolCalls: [] },
			});
		});
		const { broker, ledger, frames } = rig(echo, { path });
		expect(await broker.recover()).toEqual({ recovered: 1 });
		expect(ledger.turn(runId)?.status).toBe("completed");
		expect(verified(await frames(runId))).toBeUndefined();
	});

	test("a log without frames, and one between two messages, end well-framed too", async () => {
		const path = tempFile();
		const meta = { session: "main", engine: "played", startedAt: 5, events: [{ eventId: "evt_lost" }] };
		await crash(path, echo, async ({ bus, broker }) => {
			await bus.create({ log: "run_empty", kind: "run", meta }, []);
			const { runId } = await broker.submit({ session: "other", text: "x" });
			await visible(bus, runId!, 3);
			const whole = await framesOf(bus, runId!);
			const between = whole.map((frame) => JSON.stringify(frame).replaceAll(runId!, "run_between"));
			between.splice(2, 1, between[2]!.replace('"final":true', '"final":false'));
			await bus.create({ log: "run_between", kind: "run", meta }, between);
		});
		const { broker, ledger, frames } = rig(echo, { path });
		expect(await broker.recover()).toEqual({ recovered: 2 });
		for (const runId of ["run_empty", "run_between"]) {
			expect(verified(await frames(runId))).toBeUndefined();
			expect(ledger.turn(runId)).toMatchObject({ status: "failed", startedAt: 5 });
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
			runId = (await broker.submit({ session: "main", text: "question" })).runId!;
			await visible(bus, runId, records);
		});
		const logged: object[] = [];
		const { broker, ledger, frames } = rig(echo, { path, log: { ...silentLog, error: (facts) => logged.push(facts) } });
		expect(await broker.recover()).toEqual({ recovered: 2 });
		expect(logged).toMatchObject([{ runId: "run_bad", damage: expect.stringContaining("not JSON") }]);
		for (const id of [runId, "run_bad"]) expect(ledger.turn(id)?.status).toBe("failed");
		expect(finalEnd(await frames(runId)).reason).toBe("crashed");
	});
});

describe("messages that waited when the process died", () => {
	test("I10: are answered in order, after what was running is settled", async () => {
		const path = tempFile();
		const texts = ["one", "two", "three"];
		await crash(
			path,
			async function* () {
				yield await never;
			},
			async ({ broker }) => {
				for (const said of texts) await broker.submit({ session: "main", text: said });
			},
		);
		const { broker, ledger } = rig(echo, { path });
		await broker.recover();
		await until(() => ledger.turns({ limit: 9 }).length === 3);
		const turns = ledger.turns({ limit: 9 }).toReversed();
		expect(turns.map((turn) => [turn.messages[0]?.text, turn.status])).toEqual([
			["one", "failed"],
			["two", "completed"],
			["three", "completed"],
		]);
		expect(ledger.events({ limit: 9 }).map((event) => event.disposition.state)).toEqual([
			"started",
			"started",
			"started",
		]);
	});

	test("and waited too long are rejected as stale", async () => {
		const path = tempFile();
		let eventId = "";
		await crash(
			path,
			async function* () {
				yield await never;
			},
			async ({ broker }) => {
				await broker.submit({ session: "main", text: "one" });
				eventId = (await broker.submit({ session: "main", text: "two" })).eventId;
			},
		);
		const { broker, ledger } = rig(echo, { path, clock: manualClock(Date.now() + 16 * 60_000) });
		await broker.recover();
		expect(ledger.event(eventId)?.disposition).toEqual({ state: "rejected", because: "stale" });
		await ticks(5);
		expect(ledger.turns({ limit: 9 })).toHaveLength(1);
	});
});
