/** A daemon that others took for dead: it hears of it even when it has nothing to write, and writes nothing any more (ST19). */

import { expect, it, onTestFinished } from "vitest";
import { createBus } from "../../packages/daemon/src/bus/bus.ts";
import { manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";
import { expireAll } from "./remove.ts";
import { inMemory, inSqlite } from "./stores.ts";

it.each([
	["memory", inMemory],
	["SQLite", () => inSqlite("process")],
])(
	"ST19: %s: a daemon that only reads hears that it is fenced, and refuses what it is asked to write",
	async (_, make) => {
		const store = make();
		onTestFinished(() => store.dispose());
		const clock = manualClock(1_000_000);
		const bus = createBus({ ...quiet, storage: store.open(() => clock.now()), shared: true, clock });
		await bus.create({ log: "a", kind: "run" }, ["1"]);
		expect(await expireAll(store.open(() => clock.now()))).toEqual([bus.node]);
		expect(bus.fenced.aborted).toBe(false);
		// The next renewal, after a fifth of the lease.
		clock.advance(2000);
		await until("it hears of it", () => bus.fenced.aborted);
		const fenced = { refusal: "fenced" };
		await expect(bus.create({ log: "b", kind: "run" }, ["1"])).rejects.toMatchObject(fenced);
		await expect(bus.write([])).rejects.toMatchObject(fenced);
		expect(bus.healthy).toBe(false);
		await bus.close();
	},
);
