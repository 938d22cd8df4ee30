import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { manualClock } from "../clock.ts";
import { finalEnd, never, type Play, request, rig, started, text, until, verified, yieldsThenWaits } from "./rig.ts";

describe("watchdogs", () => {
	const limits = { firstTokenMs: 60, interTokenMs: 120, totalMs: 1000, toolMs: 500, abortGraceMs: 20 };
	const timedOut = async (play: Play, ready: (run: ReturnType<typeof rig>) => boolean, ms: number) => {
		const clock = manualClock();
		const run = rig(play, { clock, limits });
		const { result, established } = run.broker.execute(request());
		await established;
		await until(() => ready(run));
		clock.advance(ms - 1);
		expect(run.broker.live("run_1")?.status).toBe("running");
		clock.advance(1);
		expect(run.broker.live("run_1")?.status).toBe("stopping");
		clock.advance(20);
		const turn = await result;
		expect(turn).toMatchObject({ status: "failed", reason: "timeout", error: { code: "timeout" } });
		const log = await run.frames("run_1");
		expect(verified(log)).toBeUndefined();
		expect(finalEnd(log)).toMatchObject({ reason: "timeout", error: { code: "timeout" } });
		return turn;
	};

	test("the first token", async () => {
		let asked = false;
		const turn = await timedOut(
			async function* () {
				asked = true;
				yield await never;
			},
			() => asked,
			60,
		);
		expect(turn.error?.message).toContain("nothing within 60 ms");
	});

	test("silence between tokens", async () => {
		const turn = await timedOut(yieldsThenWaits(text("x")), ({ broker }) => broker.live("run_1")?.text === "x", 120);
		expect(turn.error?.message).toContain("silent for 120 ms");
		expect(turn.messages.at(-1)?.text).toBe("x");
	});

	test("a tool: silence is fine until the tool's own time is over", async () => {
		const turn = await timedOut(
			yieldsThenWaits(started("c1")),
			({ broker }) => broker.live("run_1")?.toolCalls.length === 1,
			520,
		);
		expect(turn.error?.message).toContain("tool took longer than 500 ms");
		expect(turn.toolCalls).toMatchObject([{ status: "failed", summary: "timed out" }]);
	});

	test("silence counts again as soon as the tool is done", async () => {
		await timedOut(
			yieldsThenWaits(started("c1"), { type: "tool", callId: "c1", name: "look", status: "completed" }),
			({ broker }) => broker.live("run_1")?.toolCalls[0]?.status === "completed",
			120,
		);
	});

	test("the whole run", async () => {
		const clock = manualClock();
		const steps: (() => void)[] = [];
		const { broker } = rig(
			async function* () {
				for (;;) {
					yield text(".");
					await new Promise<void>((resolve) => steps.push(resolve));
				}
			},
			{ clock, limits },
		);
		const { result } = broker.execute(request());
		for (let n = 1; n <= 9; n++) {
			await until(() => steps.length === n);
			clock.advance(100);
			steps.at(-1)!();
		}
		await until(() => broker.live("run_1")?.text === ".".repeat(10));
		clock.advance(100);
		clock.advance(20);
		expect(await result).toMatchObject({ reason: "timeout", error: { message: expect.stringContaining("1000 ms") } });
	});

	test("the engine's request has the time limit of tools", async () => {
		let seen: EngineRequest | undefined;
		const { broker } = rig(
			async function* (asked) {
				seen = asked;
				yield text("x");
			},
			{ limits: { toolMs: 500 } },
		);
		await broker.execute(request()).result;
		expect(seen).toMatchObject({ toolTimeoutMs: 500, session: "main", runId: "run_1" });
	});
});

describe("an engine that never waits", () => {
	const loopTurnsDuring = async (play: Play) => {
		const { broker, frames } = rig(play);
		let turns = 0;
		let over = false;
		const tick = () => {
			turns++;
			if (!over) setImmediate(tick);
		};
		setImmediate(tick);
		const turn = await broker.execute(request()).result;
		over = true;
		return { turn, turns, frames: await frames("run_1") };
	};

	test("does not starve the loop with text, and loses none of it", async () => {
		const { turn, turns, frames } = await loopTurnsDuring(async function* () {
			for (let n = 0; n < 20_000; n++) yield text("token ");
		});
		expect(turns).toBeGreaterThan(10);
		expect(turn.messages.at(-1)?.text.length).toBe(20_000 * 6);
		expect(verified(frames)).toBeUndefined();
		expect(finalEnd(frames).total_chunks).toBe(20_000);
	});

	test("does not starve it with events that write nothing", async () => {
		const { turns, frames } = await loopTurnsDuring(async function* () {
			for (let n = 0; n < 20_000; n++) yield text("");
		});
		expect(turns).toBeGreaterThan(10);
		expect(frames).toHaveLength(2);
	});
});
