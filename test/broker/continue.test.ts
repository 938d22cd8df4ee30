/** Continuing an interrupted run: its request, what later turns read, and when it is refused (A1). */

import type { Engine, EngineEvent, EngineRequest, EngineYield } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { quiet } from "../quiet.ts";
import { storeForTest } from "../store.ts";
import { ask, finalEnd, framesOf, gate, text, verified, yields } from "./rig.ts";

type Play = (request: EngineRequest) => AsyncIterable<EngineYield>;

const checkpoint = (data: unknown): EngineEvent => ({ type: "checkpoint", data });

/** Each run plays the next part. */
function rigOf(plays: Play[], fields: Partial<Engine> = {}) {
	const requests: EngineRequest[] = [];
	const engine: Engine = {
		name: "played",
		continues: true,
		async *run(request) {
			requests.push(request);
			yield* plays[Math.min(requests.length, plays.length) - 1]!(request);
		},
		...fields,
	};
	const store = storeForTest({ connection: "none" });
	const broker = createBroker({ ...quiet, ...store, engine });
	const proceed = async (runId: string, next: string) => {
		const continues = await broker.continuation(runId);
		const events = [{ eventId: "e1", text: "question", attachments: [] }];
		return broker.execute({ session: "main", runId: next, events, continues }).result;
	};
	return { ...store, broker, requests, proceed, engine };
}

const cut: Play = async function* () {
	yield [text("One. "), checkpoint({ n: 1 })];
	yield text("Two, and ha");
	throw new Error("cut off");
};
const rest: Play = yields(text("lf of three."));

describe("A1: a run that was cut off is continued by a new one", () => {
	test("A8: hidden text does not count as shown", async () => {
		const { broker, requests, proceed } = rigOf([
			async function* () {
				yield [
					{ type: "message", agent: "lead", visible: false },
					{ type: "text", delta: "secret", agent: "lead" },
				];
				yield [
					{ type: "message", agent: "writer" },
					{ type: "text", delta: "Hello", agent: "writer" },
				];
				throw new Error("cut off");
			},
			rest,
		]);
		const { runId, result } = await ask(broker, "main", "question");
		await result;
		await proceed(runId, "run_2");
		expect(requests[1]!.continues?.shown).toBe("Hello");
	});

	test("A27: a rolled back one is refused: the model would read neither it nor the turn before", async () => {
		const { broker, bus } = rigOf([cut]);
		const { runId, result } = await ask(broker, "main", "question");
		const turn = await result;
		expect((await broker.resumption(turn)).canContinue).toBe(true);
		await bus.write([turnWrites.rollBack(runId)]);
		await expect(broker.continuation(runId)).rejects.toThrow(/taken back for a newer message/);
	});

	test("it gets the last checkpoint and what was shown since, and both turns name each other", async () => {
		const { broker, requests, proceed, look, bus } = rigOf([cut, rest]);
		const { runId, result } = await ask(broker, "main", "question");
		await result;
		const turn = await proceed(runId, "run_2");
		expect(requests[1]!.continues).toEqual({ runId, checkpoint: { n: 1 }, shown: "Two, and ha" });
		expect(requests[1]!.messages).toEqual([{ role: "user", text: "question" }]);
		expect(turn).toMatchObject({ status: "completed", continues: runId });
		expect(turn.messages.map(({ role }) => role)).toEqual(["assistant"]);
		expect(look.turn(runId)).toMatchObject({ continuedBy: "run_2" });
		expect(look.turn("run_2")).toMatchObject({ continues: runId });
		const frames = await framesOf(bus, "run_2");
		expect(verified(frames)).toBeUndefined();
		expect(frames[0]).toMatchObject({ type: "stream.begin", continues: runId });
		expect(finalEnd(frames)).toMatchObject({ reason: "completed" });
	});

	test("one that is interrupted again before its first checkpoint continues from the same one, with all shown text", async () => {
		const again: Play = async function* () {
			yield text("lf of");
			throw new Error("cut off again");
		};
		const { broker, requests, proceed, stored } = rigOf([cut, again, rest]);
		const { runId, result } = await ask(broker, "main", "question");
		await result;
		await proceed(runId, "run_2");
		expect(stored.checkpoints.get(runId)).toBeUndefined();
		await proceed("run_2", "run_3");
		expect(requests[2]!.continues).toEqual({ runId: "run_2", checkpoint: { n: 1 }, shown: "Two, and half of" });
		expect(requests[2]!.messages).toEqual([{ role: "user", text: "question" }]);
		expect(stored.checkpoints.get("run_3")).toBeUndefined();
	});

	test("A27: later turns read both halves as one answer, although the first was kept ready as an interrupted one", async () => {
		const echo: Play = yields(text("ok"));
		const { broker, requests, proceed } = rigOf([echo, cut, rest, echo]);
		await (await ask(broker, "main", "before")).result;
		const { runId, result } = await ask(broker, "main", "question");
		await result;
		await proceed(runId, "run_2");
		expect(requests[2]!.messages.map(({ text }) => text)).toEqual(["before", "ok", "question"]);
		await (await ask(broker, "main", "later")).result;
		const told = requests[3]!.messages.map((message) => message.text);
		expect(told).toEqual(["before", "ok", "question", "One. Two, and ha", "lf of three.", "later"]);
	});

	test("it works after a stop, too", async () => {
		const begun = gate();
		const endless: Play = async function* () {
			yield text("Begun");
			begun.open();
			await new Promise(() => {});
		};
		const { broker, requests, proceed } = rigOf([endless, rest]);
		const { runId, abort, result } = await ask(broker, "main", "question");
		await begun.opened;
		abort();
		expect((await result).status).toBe("aborted");
		await proceed(runId, "run_2");
		expect(requests[1]!.continues).toMatchObject({ runId, checkpoint: null, shown: "Begun" });
	});
});

describe("A1: it is refused, with the reason", () => {
	const refusal = async (work: Promise<unknown>) =>
		expect(work)
			.rejects.toMatchObject({ code: "conflict" })
			.then(async () => work.catch((cause: Error) => cause.message));

	test("a run that has completed, is live, or is not there", async () => {
		const { broker } = rigOf([rest]);
		const { runId, result } = await ask(broker, "main", "question");
		expect(await refusal(broker.continuation(runId))).toContain("still live");
		await result;
		expect(await refusal(broker.continuation(runId))).toContain("has completed");
		await expect(broker.continuation("run_x")).rejects.toMatchObject({ code: "not_found" });
	});

	test("a turn that is not its session's newest, or was continued", async () => {
		const { broker, proceed, look } = rigOf([cut, cut, rest]);
		const first = await ask(broker, "main", "question");
		await first.result;
		expect((await broker.resumption(look.turn(first.runId)!)).canContinue).toBe(true);
		const second = await ask(broker, "main", "another");
		await second.result;
		expect(await refusal(broker.continuation(first.runId))).toContain("has a newer turn");
		expect((await broker.resumption(look.turn(first.runId)!)).canContinue).toBe(false);
		await proceed(second.runId, "run_2");
		expect(await refusal(broker.continuation(second.runId))).toContain("run_2 continues it already");
	});

	test("agents, tools or phases that are configured differently now", async () => {
		const { broker, bus, ledger, engine } = rigOf([cut], { configHash: "before" });
		const { runId, result } = await ask(broker, "main", "question");
		await result;
		const next = createBroker({ ...quiet, bus, ledger, engine: { ...engine, configHash: "after" } });
		expect(await refusal(next.continuation(runId))).toContain("configured differently");
	});
});
