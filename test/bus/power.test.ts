/** Durability `power`: a commit counts once the disk has synced it, and a sync that fails is repeated. */

import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { type Bus, createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { freshFolder } from "../runtime/folder.ts";

let clock: ManualClock;
let bus: Bus;
/** Syncs that the disk has not answered. */
let syncs: PromiseWithResolvers<void>[];

beforeEach(() => {
	clock = manualClock(1000);
	syncs = [];
	const file = openSqlite(join(freshFolder(), "bus.db"), "power");
	const sync = () => {
		const asked = Promise.withResolvers<void>();
		syncs.push(asked);
		return asked.promise;
	};
	bus = createBus({ ...quiet, storage: sqliteStorage({ ...file, sync }), clock });
	onTestFinished(async () => {
		for (const asked of syncs) asked.resolve();
		await bus.close();
		file.close();
	});
});

const turn = () => new Promise((resolve) => setImmediate(resolve));
const turns = async () => {
	for (let n = 0; n < 5; n++) await turn();
};

it("I1: a record is invisible until its sync has ended; what comes meanwhile shares the next one", async () => {
	const creating = bus.create({ log: "a", kind: "run" }, ["begin"]);
	await turns();
	syncs[0]!.resolve();
	const writer = await creating;
	const cursor = await bus.cursor({ log: "a" }, 1);
	writer.append("one");
	await turns();
	writer.append("two");
	writer.append("three");
	await turns();
	expect([syncs.length, cursor.next()]).toEqual([2, undefined]);
	syncs[1]!.resolve();
	await turns();
	expect(cursor.next()).toMatchObject({ records: ["one"] });
	expect([syncs.length, cursor.next()]).toEqual([3, undefined]);
	syncs[2]!.resolve();
	await turns();
	expect(cursor.next()).toMatchObject({ records: ["two", "three"] });
});

it("ST1: a failed sync degrades the store, and the same commit is applied once and synced later", async () => {
	const creating = bus.create({ log: "a", kind: "run" }, ["begin"]);
	await turns();
	syncs[0]!.reject(new Error("i/o error"));
	await turns();
	expect(bus.healthy).toBe(false);
	clock.advance(60_000);
	await turns();
	syncs.at(-1)!.resolve();
	await creating;
	expect(bus.healthy).toBe(true);
	expect(await bus.describe("a")).toMatchObject({ head: 1 });
	expect((await bus.cursor({ log: "a" }, 0)).next()).toMatchObject({ records: ["begin"] });
});
