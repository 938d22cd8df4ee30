/** ST8: a run waits for room. An engine that is faster than the store is not taken further than one commit should hold. */

import { expect, test, vi } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { GrowingText } from "../../packages/daemon/src/broker/frames/text.ts";
import { quiet } from "../quiet.ts";
import { storeForTest } from "../store.ts";
import { ask, engineOf, type Play, yields } from "./rig.ts";

/** Embedded: a commit is made in the turn of the loop after its first record. */
async function run(limits: { commitRecordsMax?: number; commitCharsMax?: number }, play: (bus: Bus) => Play) {
	const { bus, ledger, look } = storeForTest({ connection: "none", limits });
	const broker = createBroker({ ...quiet, bus, ledger, engine: engineOf(play(bus)) });
	const { runId, result } = await ask(broker, "main", "hi");
	await result;
	expect(look.turn(runId)?.status).toBe("completed");
	return bus.stats.commits;
}
type Bus = ReturnType<typeof storeForTest>["bus"];

test("ST8: tokens of an engine that never pauses wait for room", async () => {
	const TOKENS = 100;
	let ahead = 0;
	await run(
		{ commitRecordsMax: 4 },
		(bus) =>
			async function* () {
				const before = bus.stats.records;
				for (let said = 1; said <= TOKENS; said++) {
					yield { type: "text", delta: "x" };
					ahead = Math.max(ahead, said - (bus.stats.records - before));
				}
			},
	);
	expect(ahead).toBeGreaterThan(0);
	expect(ahead).toBeLessThanOrEqual(4);
});

test("ST8: so do the portions of one long delta", async () => {
	const PORTION = 64 * 1024;
	const commits = await run({ commitCharsMax: PORTION }, () =>
		yields({ type: "text", delta: "x".repeat(10 * PORTION) }),
	);
	expect(commits).toBeGreaterThanOrEqual(10);
});

test("I12, ST8: a run that is crowded by others lets them go on, even if it writes nothing itself", async () => {
	const { bus, ledger } = storeForTest({ connection: "none", limits: { waitingCharsMax: 1 } });
	const other = await bus.create({ log: "other", kind: "run" }, []);
	let said = 0;
	const play: Play = async function* () {
		// Waiting records commit in a later turn of the loop, and this engine never waits for one.
		other.append("x");
		for (; said < 10_000 && bus.stats.records < 2; said++) yield { type: "text", delta: "" };
	};
	const broker = createBroker({ ...quiet, bus, ledger, engine: engineOf(play) });
	const { result } = await ask(broker, "main", "hi");
	expect((await result).status).toBe("completed");
	expect(said).toBeLessThan(10);
});

test("listing live runs does not build their texts: there may be thousands of runs", async () => {
	const { bus, ledger } = storeForTest();
	const [told, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const play: Play = async function* () {
		yield { type: "text", delta: "so far" };
		told.resolve();
		await end.promise;
	};
	const broker = createBroker({ ...quiet, bus, ledger, engine: engineOf(play) });
	const { runId, result } = await ask(broker, "main", "hi");
	await told.promise;
	const made = vi.spyOn(GrowingText.prototype, "toString");
	try {
		expect(broker.liveRuns().map((run) => run.runId)).toEqual([runId]);
		expect(made).not.toHaveBeenCalled();
		expect(broker.liveRuns()[0]!.text).toBe("so far");
		expect(made).toHaveBeenCalled();
	} finally {
		made.mockRestore();
	}
	end.resolve();
	await result;
});
