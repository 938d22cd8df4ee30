/** The wall clock is set back while something is under way: nothing waits for the time that was taken away. */

import { describe, expect, test } from "vitest";
import { type Clock, manualClock } from "../../src/std/clock.ts";
import { never, request, rig, tempFile, ticks, until, verified } from "./rig.ts";

const HOUR_MS = 3_600_000;

/** Timers go on as they do; only what the clock says is set back. */
function settable() {
	const clock = manualClock(10 * HOUR_MS);
	let back = 0;
	const shown: Clock = { now: () => clock.now() - back, after: (ms, callback) => clock.after(ms, callback) };
	return {
		clock: shown,
		advance: (ms: number) => clock.advance(ms),
		setBack(ms: number) {
			back += ms;
		},
	};
}

describe("a clock that is set back by an hour", () => {
	test.each(["the stop", "the last token"])("I12: after %s the run settles all the same", async (moment) => {
		const time = settable();
		const limits = { abortGraceMs: 2000, interTokenMs: 5000 };
		const { broker, frames } = rig(
			async function* () {
				yield { type: "text", delta: "x" };
				await never;
			},
			{ clock: time.clock, limits },
		);
		const { result, stream } = broker.execute(request());
		await until(() => broker.live("run_1")?.text === "x");
		if (moment === "the stop") stream.abort();
		time.setBack(HOUR_MS);
		// What had passed when the clock was set back may count anew, once.
		time.advance(2 * (limits.interTokenMs + limits.abortGraceMs));
		const turn = await result;
		expect(turn.reason).toBe(moment === "the stop" ? "aborted" : "timeout");
		expect(turn.endedAt).toBeGreaterThanOrEqual(turn.startedAt);
		const stamps = (await frames("run_1")).map((frame) => frame.ts);
		expect(stamps).toEqual(stamps.toSorted((a, b) => a - b));
	});

	test("the tokens and durations of an answer stay in order", async () => {
		const time = settable();
		const { broker, ledger, frames } = rig(
			async function* () {
				yield { type: "tool", callId: "c1", name: "look", status: "started" };
				time.setBack(HOUR_MS);
				yield { type: "tool", callId: "c1", name: "look", status: "completed" };
				time.advance(10);
				yield { type: "text", delta: "x" };
			},
			{ clock: time.clock },
		);
		await broker.execute(request()).result;
		const turn = ledger.turn("run_1")!;
		expect(turn.firstTokenMs).toBe(10);
		expect(turn.endedAt - turn.startedAt).toBe(10);
		expect(turn.toolCalls[0]!.endedAt).toBe(turn.toolCalls[0]!.startedAt);
		expect(verified(await frames("run_1"))).toBeUndefined();
	});

	const collect = { mode: "collect", collectMs: 1500, messagesMax: 10, atCap: "drop_newest" } as const;

	test("I10: messages that are being collected are answered on time", async () => {
		const time = settable();
		const { broker, ledger } = rig(
			async function* ({ messages }) {
				yield { type: "text", delta: `re ${messages.at(-1)!.text}` };
			},
			{ clock: time.clock },
		);
		await broker.submit({ session: "main", text: "one", queue: collect });
		await broker.submit({ session: "main", text: "two", queue: collect });
		time.setBack(HOUR_MS);
		time.advance(2 * collect.collectMs);
		await until(() => ledger.turns({ limit: 1 }).length === 1);
		expect(ledger.turns({ limit: 1 })[0]!.messages.map(({ text }) => text)).toEqual(["one", "two", "re two"]);
	});

	test("a run that recovery ends does not end before its last token", async () => {
		const time = settable();
		const path = tempFile();
		const before = rig(
			async function* () {
				time.advance(100);
				yield { type: "text", delta: "x" };
				await never;
			},
			{ clock: time.clock, path },
		);
		before.broker.execute(request());
		await until(async () => (await before.bus.describe("run_1"))?.head === 2);
		time.setBack(HOUR_MS);
		const after = rig(() => never as never, { clock: time.clock, path });
		expect(await after.broker.recover()).toEqual({ recovered: 1 });
		const turn = after.ledger.turn("run_1")!;
		expect(turn.endedAt - turn.startedAt).toBe(100);
	});

	test("I10: over a restart too", async () => {
		const time = settable();
		const path = tempFile();
		const before = rig(() => never as never, { clock: time.clock, path });
		await before.broker.submit({ session: "main", text: "one", queue: collect });
		await before.bus.close();
		time.setBack(HOUR_MS);
		const after = rig(
			async function* () {
				yield { type: "text", delta: "answer" };
			},
			{ clock: time.clock, path },
		);
		await after.broker.recover();
		await ticks(4);
		time.advance(1500);
		await until(() => after.ledger.turns({ limit: 1 }).length === 1);
	});
});
