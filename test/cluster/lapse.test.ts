/** A lapsed lease: nothing leaves the daemon until the store answers again (I7). */

import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { ask, engineOf, text } from "../broker/rig.ts";
import { manualClock } from "../clock.ts";
import { rigForTest } from "../nex/outbound/rig.ts";
import { quiet } from "../quiet.ts";
import { openStore, storeForTest } from "../store.ts";
import { until } from "../until.ts";

const LAPSED_MS = 8000;
const RENEWAL_MS = 2000;

it("I7: a tool does not start while the lease has lapsed, and starts with the next answer of the store", async () => {
	const clock = manualClock(Date.now());
	const store = storeForTest({ shared: true, clock, connection: "none" });
	const acted: boolean[] = [];
	const engine = engineOf(async function* () {
		yield { type: "tool", callId: "c1", name: "bash", status: "started" };
		acted.push(store.bus.lease.isHeld);
		yield { type: "tool", callId: "c1", name: "bash", status: "completed" };
		yield text("done");
	});
	const broker = createBroker({ ...quiet, ...store, engine });
	clock.block(LAPSED_MS);
	expect(store.bus.lease.isHeld).toBe(false);
	const { runId, result } = await ask(broker, "s", "hi");
	await until("the start is visible", async () => ((await store.bus.describe(runId))?.head ?? 0) > 2);
	expect(acted).toEqual([]);
	clock.advance(RENEWAL_MS);
	expect(await result).toMatchObject({ status: "completed" });
	expect(acted).toEqual([true]);
});

it("I7: the stream process ends with the lease, no line reaches an adapter before it is held, and the chat has one copy", async () => {
	const clock = manualClock(Date.now());
	const rig = rigForTest((channel) => ({ full: channel("full") }), {
		open: (path) => openStore(path, { shared: true, clock }),
	});
	const { run, id } = await rig.begin();
	run.text("Hello,");
	await until("the beginning is visible", () => rig.deliveries.get(id)?.messages[0]?.shown === 6);
	const { pid } = rig.outbound.accounts()[0]!.processes.stream!;
	clock.block(LAPSED_MS);
	run.text(" world");
	await until("the process has ended", () => !existsSync(`/proc/${pid}`));
	await until("the next one waits", () => rig.outbound.accounts()[0]!.processes.stream!.state !== "running");
	expect(rig.visible("c1")).toEqual(["Hello,"]);
	expect(rig.outbound.accounts()[0]!.processes.stream!.pid).toBeUndefined();
	clock.advance(RENEWAL_MS);
	await run.end();
	expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
	expect(rig.visible("c1")).toEqual(["Hello, world"]);
	expect(rig.calls().filter(({ op }) => op === "create")).toHaveLength(1);
});
