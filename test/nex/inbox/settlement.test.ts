/** A Ledger that refuses a turn on a working store: the session continues, with what could be saved. */

import { describe, expect, test } from "vitest";
import type { Turn } from "../../../packages/daemon/src/ledger/turns/port.ts";
import {
	finalEnd,
	type Play,
	started,
	tempFile,
	text,
	ticks,
	until,
	verified,
	yieldsThenWaits,
} from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { refuseWrites } from "../../store.ts";
import { echo, nexRig } from "./rig.ts";

const hello: Play = async function* (...asked) {
	yield started("t1");
	yield { type: "tool", callId: "t1", name: "look", status: "completed", result: { seen: 1 } };
	yield* echo(...asked);
};

/** A rig whose Ledger refuses while `refuses` says so. */
function world(refuses: (turn: Turn, nth: number) => boolean, { play = hello, path = tempFile(), dies = false } = {}) {
	const clock = manualClock(Date.now());
	const logged: string[] = [];
	const log = { debug() {}, info() {}, warn() {}, error: (_facts: object, words: string) => void logged.push(words) };
	const parts = nexRig(play, { path, clock, log, dies, connection: "none" });
	const tries: number[] = [];
	refuseWrites(parts, ({ table, op, args }) => {
		if (table !== "turns" || op !== "settle") return false;
		tries.push(clock.now());
		return refuses(args[0] as Turn, tries.length);
	});
	const pass = async (ms: number) => {
		for (let past = 0; past < ms; past += 100) {
			clock.advance(100);
			await ticks(20);
		}
	};
	const submit = (text: string) => parts.nex.receive({ session: "main", text });
	return { ...parts, logged, tries, pass, submit };
}

describe("a turn that the Ledger refuses", () => {
	test("I5: is tried again, ever later; the final frame is visible only with it", async () => {
		const { broker, look, frames, submit, pass, tries, logged } = world((_turn, nth) => nth <= 4);
		const { runId } = await submit("one");
		await until(() => tries.length === 1);
		await ticks(4);
		expect(broker.unsaved).toBe(1);
		expect(broker.live(runId!)?.status).toBe("running");
		expect((await frames(runId!)).some((frame) => frame.type === "stream.end" && frame.final)).toBe(false);
		const second = await submit("two");
		expect(second.disposition).toEqual({ state: "queued" });
		await pass(5_000);
		await until(() => look.turns({ limit: 9 }).length === 2);
		expect(broker.unsaved).toBe(0);
		expect(look.turn(runId!)).toMatchObject({ status: "completed", toolCalls: [{ name: "look" }] });
		const all = await frames(runId!);
		expect(verified(all)).toBeUndefined();
		expect(finalEnd(all).reason).toBe("completed");
		const waits = tries.slice(1, 5).map((at, n) => at - tries[n]!);
		expect(waits).toEqual([100, 200, 400, 800]);
		expect(logged.length).toBe(4);
	});

	test.each([
		["its tools", (turn: Turn) => turn.toolCalls.length > 0, ["one", "re one"]],
		["its messages", (turn: Turn) => turn.messages.length > 0, []],
	])(
		"for good because of %s: is settled as failed with what can be saved, and the session continues",
		async (_what, bad, kept) => {
			const { broker, look, frames, submit, pass, logged } = world(
				(turn) => turn.messages[0]?.text !== "two" && bad(turn),
			);
			const { runId } = await submit("one");
			await submit("two");
			await until(() => broker.unsaved === 1);
			await pass(40_000);
			await until(() => look.turns({ limit: 9 }).length === 2);
			const error = { code: "data_loss", message: expect.stringContaining("CHECK constraint failed") };
			const saved = look.turn(runId!)!;
			expect(saved).toMatchObject({ status: "failed", reason: "error", error, toolCalls: [] });
			expect(saved.messages.map(({ text }) => text)).toEqual(kept);
			const all = await frames(runId!);
			expect(verified(all)).toBeUndefined();
			expect(finalEnd(all)).toMatchObject({ reason: "error", error });
			expect(look.turns({ limit: 1 })[0]).toMatchObject({ status: "completed" });
			expect(broker.unsaved).toBe(0);
			expect(logged.at(-1)).toContain("without the parts that the ledger refuses");
		},
	);

	test("whatever the cause, its log ends and the session continues", async () => {
		const { broker, look, frames, submit, pass, logged } = world((turn) => turn.runId === first);
		let first: string | undefined;
		const accepted = submit("one");
		first = (await accepted).runId;
		await submit("two");
		await until(() => broker.unsaved === 1);
		await pass(40_000);
		await until(() => look.turns({ limit: 9 }).length === 1);
		expect(look.turn(first!)).toBeUndefined();
		expect(finalEnd(await frames(first!)).reason).toBe("error");
		expect(logged.at(-1)).toContain("could not be saved at all");
	});

	test.each([
		["its tools", (turn: Turn) => turn.toolCalls.length > 0],
		["anything", () => true],
	])("I3: of a process that died, because of %s: does not keep its session waiting forever", async (_what, bad) => {
		const path = tempFile();
		const play = yieldsThenWaits(started("t1"), text("well"));
		const before = world(() => false, { play, path, dies: true });
		const dead = (await before.submit("one")).runId!;
		await until(async () => (await before.bus.describe(dead))!.head >= 4);
		const { nex, look, frames, submit, pass } = world((turn) => turn.runId === dead && bad(turn), { path });
		expect(await nex.recover()).toEqual({ recovered: 0 });
		const second = await submit("two");
		expect(second.disposition).toEqual({ state: "queued" });
		await pass(50_000);
		const answered = (turn: Turn) => turn.messages.at(-1)?.text === "re two";
		await until(() => look.turns({ limit: 9 }).some(answered));
		const all = await frames(dead);
		expect(verified(all)).toBeUndefined();
		expect(finalEnd(all)).toMatchObject({ reason: "error", error: { code: "data_loss" } });
	});
});
