import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import type { ExecuteRequest } from "../../packages/daemon/src/broker/port.ts";
import { decodeFrame, NexusError } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import {
	eventsOf,
	finalEnd,
	gate,
	never,
	type Play,
	request,
	rig,
	started,
	tempFile,
	text,
	ticks,
	until,
	verified,
	yields,
	yieldsThenWaits,
} from "./rig.ts";

describe("a run that completes", () => {
	const play: Play = yields(
		{ type: "reasoning", delta: "hm" },
		text("Hello "),
		{ type: "tool", callId: "c1", name: "look", status: "started", args: { at: "sky" } },
		{ type: "tool", callId: "c1", name: "look", status: "completed", result: "blue", summary: "looked" },
		{ type: "message" },
		text("world"),
		{ type: "usage", input: 10, output: 5 },
		{ type: "usage", input: 20, output: -1, cache_read: 7 },
	);

	test.each(["memory", "sqlite"])("is a well-framed log and a turn (%s)", async (storage) => {
		const { broker, look, frames } = rig(play, storage === "sqlite" ? { path: tempFile() } : {});
		const { result, established, saved } = broker.execute(request());
		expect(broker.live("run_1")).toBeUndefined();
		await established;
		expect(broker.live("run_1")).toBeDefined();
		const turn = await result;
		expect(broker.live("run_1")).toBeUndefined();
		expect(await saved).toEqual(turn);
		expect(turn).toMatchObject({
			runId: "run_1",
			session: "main",
			engine: "played",
			status: "completed",
			reason: "completed",
			usage: { input: 30, output: 5, cache_read: 7 },
			messages: [
				{ role: "user", text: "question", eventId: "evt_1" },
				{ role: "assistant", text: "Hello ", messageId: "run_1.1" },
				{ role: "assistant", text: "world", messageId: "run_1.4" },
			],
			toolCalls: [
				{ callId: "c1", name: "look", status: "completed", message: 1, args: '{"at":"sky"}', result: '"blue"' },
			],
		});
		expect(look.turn("run_1")).toEqual(turn);
		const log = await frames("run_1");
		expect(verified(log)).toBeUndefined();
		expect(finalEnd(log)).toMatchObject({ reason: "completed", usage: turn.usage });
	});

	test("its stream of events", async () => {
		const { broker, bus } = rig(play);
		await broker.execute(request({ target: { to: "channel:1" } })).result;
		const heard = [
			{ type: "stream_start", runId: "run_1", sessionLabel: "main", target: { to: "channel:1" } },
			{ type: "reasoning", text: "hm" },
			{ type: "token", text: "Hello " },
			{ type: "tool_status", toolName: "look", toolCallId: "c1", status: "started", args: { at: "sky" } },
			{
				type: "tool_status",
				toolName: "look",
				toolCallId: "c1",
				status: "completed",
				summary: "looked",
				result: "blue",
			},
			{ type: "stream_end", runId: "run_1", final: false },
			{ type: "token", text: "world" },
			{ type: "stream_end", runId: "run_1", final: true },
		];
		expect(await eventsOf(bus, "run_1")).toEqual(heard);
	});

	test("I5: a reader of the final end finds the turn in the ledger", async () => {
		const { broker, bus, look } = rig(play, { path: tempFile() });
		const { established } = broker.execute(request());
		await established;
		const cursor = await bus.cursor({ log: "run_1" }, 0);
		const found = await new Promise<unknown>((resolve) => {
			const read = async () => {
				for (let batch = await cursor.next(); batch; batch = await cursor.next()) {
					const last = decodeFrame(batch.records.at(-1)!);
					if (last.type === "stream.end" && last.final) resolve(look.turn("run_1"));
				}
			};
			cursor.onWake(() => void read());
			void read();
		});
		expect(found).toMatchObject({ runId: "run_1", status: "completed" });
	});
});

describe("establishment (I9)", () => {
	test("what cannot start rejects both promises and writes nothing", async () => {
		const { broker, bus } = rig(async function* () {
			await never;
			yield text("never");
		});
		const bad = broker.execute(request({ session: "no spaces" }));
		await expect(bad.established).rejects.toMatchObject({ code: "invalid" });
		await expect(bad.result).rejects.toMatchObject({ code: "invalid" });
		await broker.execute(request()).established;
		const second = broker.execute(request({ runId: "run_2" }));
		await expect(second.established).rejects.toMatchObject({
			code: "conflict",
			message: "Session main has a run already; wait until it has settled.",
		});
		expect((await bus.list()).map((info) => info.log)).toEqual(["run_1"]);
	});

	test("a run id that was used before is refused, and the session is free again", async () => {
		const { broker } = rig(yields(text("x")));
		await broker.execute(request()).result;
		await expect(broker.execute(request()).established).rejects.toMatchObject({ code: "conflict" });
		expect((await broker.execute(request({ runId: "run_2" })).result).status).toBe("completed");
	});
});

describe("a run that fails", () => {
	test.each([
		["an Error", new Error("model is gone"), { code: "engine_failed", message: "model is gone" }],
		["a NexusError", new NexusError("busy", "429"), { code: "busy", message: "429" }],
		["something odd", "just text", { code: "engine_failed", message: "just text" }],
	])("keeps what was said when the engine throws %s", async (_, thrown, error) => {
		const { broker, bus, look, frames } = rig(async function* () {
			yield text("half ");
			yield started("c1");
			// oxlint-disable-next-line typescript/only-throw-error -- an engine may throw anything
			throw thrown;
		});
		const execution = broker.execute(request());
		const turn = await execution.result;
		expect(turn).toMatchObject({ status: "failed", reason: "error", error });
		expect(turn.messages.at(-1)?.text).toBe("half ");
		expect(turn.toolCalls).toMatchObject([{ callId: "c1", status: "failed", summary: "the run failed" }]);
		expect(look.turn("run_1")).toEqual(turn);
		const log = await frames("run_1");
		expect(verified(log)).toBeUndefined();
		expect(finalEnd(log)).toMatchObject({ reason: "error", error });
		expect((await eventsOf(bus, "run_1")).at(-1)).toEqual({
			type: "stream_error",
			error: error.message,
			partial: true,
		});
	});

	test("because of a malformed event releases the engine", async () => {
		let released = false;
		const { broker } = rig(async function* () {
			try {
				yield { type: "txet" } as unknown as EngineEvent;
				yield text("never");
			} finally {
				released = true;
			}
		});
		const turn = await broker.execute(request()).result;
		expect(turn.error).toMatchObject({ code: "engine_failed", message: expect.stringContaining('"txet"') });
		await until(() => released);
	});

	test("when run() itself throws or returns no iterable", async () => {
		const throwing = rig(() => {
			throw new Error("not today");
		});
		expect((await throwing.broker.execute(request()).result).error?.message).toBe("not today");
		const odd = rig(() => ({}) as AsyncIterable<EngineEvent>);
		expect((await odd.broker.execute(request()).result).error?.code).toBe("engine_failed");
	});
});

describe("a run that is stopped", () => {
	test("in the middle keeps what was said, and takes no text after it", async () => {
		let signalled = false;
		const { broker, bus, frames } = rig(async function* (_, signal) {
			signal.addEventListener("abort", () => (signalled = true));
			yield text("one ");
			while (!signal.aborted) await new Promise((resolve) => setImmediate(resolve));
			yield text("too late");
		});
		const execution = broker.execute(request());
		await until(() => broker.live("run_1")?.text === "one ");
		execution.abort();
		execution.abort();
		const turn = await execution.result;
		expect(signalled).toBe(true);
		expect(turn).toMatchObject({ status: "aborted", reason: "aborted" });
		expect(turn.error).toBeUndefined();
		expect(turn.messages.at(-1)?.text).toBe("one ");
		const log = await frames("run_1");
		expect(verified(log)).toBeUndefined();
		expect(finalEnd(log).reason).toBe("aborted");
		expect((await eventsOf(bus, "run_1")).at(-1)?.type).toBe("stream_end");
	});

	test("is aborted also when the engine throws because of the signal", async () => {
		const { broker } = rig(async function* (_, signal) {
			yield text("one ");
			await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
		});
		await broker.execute(request()).established;
		await until(() => broker.live("run_1")?.text === "one ");
		expect(await broker.abort("run_1")).toMatchObject({ status: "aborted" });
		expect(broker.abort("run_1")).toBeUndefined();
	});

	test("I12: in a tool that ignores its signal settles at the end of the grace time", async () => {
		const clock = manualClock(1000);
		const { broker, frames } = rig(yieldsThenWaits(text("let me look"), started("c1")), {
			clock,
			limits: { abortGraceMs: 2000 },
		});
		const { result, established } = broker.execute(request());
		await established;
		await until(() => broker.live("run_1")?.toolCalls.length === 1);
		let settled = false;
		void broker.abort("run_1")!.then(() => (settled = true));
		expect(broker.live("run_1")?.status).toBe("stopping");
		clock.advance(1999);
		await ticks(10);
		expect(settled).toBe(false);
		clock.advance(1);
		const turn = await result;
		expect(turn).toMatchObject({ status: "aborted", endedAt: 3000 });
		expect(turn.toolCalls).toMatchObject([{ status: "failed", summary: "stopped", endedAt: 3000 }]);
		expect(verified(await frames("run_1"))).toBeUndefined();
	});

	test("an engine that fails after its run was settled harms nothing", async () => {
		const clock = manualClock();
		const door = gate();
		const { broker, look, frames } = rig(
			async function* () {
				yield text("x");
				await door.opened;
				throw new Error("too late to matter");
			},
			{ clock },
		);
		const execution = broker.execute(request());
		await until(() => broker.live("run_1")?.text === "x");
		execution.abort();
		clock.advance(2000);
		expect((await execution.result).status).toBe("aborted");
		door.open();
		await ticks(10);
		expect(look.turn("run_1")?.status).toBe("aborted");
		expect(verified(await frames("run_1"))).toBeUndefined();
	});
});

describe("what a run is asked with", () => {
	const asked = async (fields: Partial<ExecuteRequest>) => {
		const seen: EngineRequest[] = [];
		const { broker } = rig(async function* (approvals) {
			seen.push(approvals);
			yield text("answer");
		});
		await broker.execute(request(fields)).result;
		return seen[0]!;
	};

	test("the sender, tools and agent reach the engine as they are", async () => {
		const fields = {
			sender: { id: "42", name: "Ada", channel: "telegram", account: "main" },
			allowedTools: ["time"],
			agent: "planner",
		};
		expect(await asked(fields)).toMatchObject(fields);
		expect(await asked({ allowedTools: [] })).toMatchObject({ allowedTools: [] });
	});

	test("what was left out is not there", async () => {
		expect(Object.keys(await asked({})).sort()).toEqual([
			...["attachments", "messages", "runId", "session", "toolTimeoutMs"],
		]);
	});
});
