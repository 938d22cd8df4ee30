/** ST8: a run waits for room. An engine that is faster than the store is not taken further than one commit should hold. */

import { expect, test } from "vitest";
import { createBroker } from "../../src/broker/broker.ts";
import { storeForTest } from "../store.ts";
import { ask, engineOf, type Play } from "./rig.ts";

/** Embedded: a commit is made in the turn of the loop after its first record. */
async function run(limits: { commitRecordsMax?: number; commitCharsMax?: number }, play: (bus: Bus) => Play) {
	const { bus, ledger, look } = storeForTest({ connection: "none", limits });
	const broker = createBroker({ bus, ledger, engine: engineOf(play(bus)) });
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
	const commits = await run(
		{ commitCharsMax: PORTION },
		() =>
			async function* () {
				yield { type: "text", delta: "x".repeat(10 * PORTION) };
			},
	);
	expect(commits).toBeGreaterThanOrEqual(10);
});
