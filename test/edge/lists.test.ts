/** Lists are read page by page: every row once, newest first, and the last page ends. */

import { describe, expect, it } from "vitest";
import type { Channels, Lab } from "../../packages/daemon/src/edge/edge.ts";
import { type DeliveryQuery, deliveryWrites } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import { newId } from "../../packages/protocol/src/protocol.ts";
import { storeForTest } from "../store.ts";
import { type Rig, rigForTest } from "./rig.ts";

/** Follows the pages to their end; one that never ends is given up. */
async function pages<Row>(rig: Rig, path: string, name: string, idOf: (row: Row) => string): Promise<string[][]> {
	const read: string[][] = [];
	for (let before: string | undefined; read.length < 50; before = read.at(-1)!.at(-1)) {
		const at = before === undefined ? "" : `&before=${before}`;
		const rows = ((await (await rig.get(`${path}${at}`)).json()) as Record<string, Row[]>)[name]!;
		if (rows.length === 0) return read;
		read.push(rows.map(idOf));
	}
	return read;
}

describe("P6.5: the list of runs", () => {
	it("has every run once, whatever order they settle in, and ends while an old one is live", async () => {
		const rig = await rigForTest();
		const runs = [];
		for (let n = 0; n < 11; n++) runs.push(await rig.start(`s${n}`));
		// The first and one in the middle stay live.
		for (const n of [9, 3, 10, 1, 7, 2, 8, 6, 4]) {
			runs[n]!.puppet.finish();
			await rig.settled(runs[n]!.runId);
		}
		const newestFirst = runs.map(({ runId }) => runId).toReversed();
		for (const limit of [1, 2, 3, 11]) {
			const read = await pages<{ run_id: string }>(rig, `/v1/runs?limit=${limit}`, "runs", (run) => run.run_id);
			expect(read.flat()).toEqual(newestFirst);
			expect(read).toHaveLength(Math.ceil(11 / limit));
		}
		const own = await pages<{ run_id: string }>(rig, "/v1/runs?limit=1&session=s0", "runs", (run) => run.run_id);
		expect(own).toEqual([[runs[0]!.runId]]);
	});
});

describe("the list of deliveries", () => {
	it("has full pages of the accounts' and the lab's together, without those that only start the lab", async () => {
		const [own, lab] = [storeForTest(), storeForTest()];
		const stores = { own, lab };
		const ids: Record<"own" | "lab", string[]> = { own: [], lab: [] };
		const warming: string[] = [];
		const order = ["own", "lab", "lab", "lab", "own", "own", "lab", "own", "lab", "lab"] as const;
		for (const [n, where] of order.entries()) {
			const id = newId("dlv");
			const place = { runId: `run_${n}`, channel: "telegram", account: where, target: { to: "1" }, options: {} };
			await stores[where].bus.write([deliveryWrites.open({ id, ...place, createdAt: 1 })]);
			if (n === 2 || n === 9) warming.push(id);
			else ids[where].push(id);
		}
		const of = (where: "own" | "lab") => async (query: DeliveryQuery) => stores[where].ledger.deliveries.list(query);
		const channels = {
			outbound: { deliveries: of("own") },
			lab: { deliveries: (query: DeliveryQuery) => of("lab")({ ...query, except: warming }) } as Partial<Lab>,
		} as unknown as Channels;
		const rig = await rigForTest({ deps: { channels } });
		const newestFirst = [...ids.own, ...ids.lab].toSorted().toReversed();
		for (const limit of [1, 3, 4]) {
			const path = `/v1/deliveries?limit=${limit}`;
			const read = await pages<{ delivery_id: string }>(rig, path, "deliveries", (row) => row.delivery_id);
			expect(read.flat()).toEqual(newestFirst);
			expect(read.slice(0, -1).every((page) => page.length === limit)).toBe(true);
		}
	});
});
