/** The endpoints about memory. */

import { expect, it } from "vitest";
import { memoryWrites } from "../../packages/daemon/src/services/memory/rows.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { expectAnswer, type Rig, rigForTest } from "./rig.ts";

const idOf = (n: number) => `mem_${"0".repeat(25)}${n}`;
const LIMITS = { itemsMax: 10, itemsTotalMax: 100 };

async function withNotes(): Promise<Rig> {
	const rig: Rig = await rigForTest({
		limits: { listItemsMax: 2 },
		memory: { enabled: true },
		clock: { ...systemClock, now: () => 9 },
	});
	const provenance = { at: 1, runId: "run_1", agent: "main", channel: "telegram", account: "bot", sender: "7" };
	const notes = [
		{ id: idOf(1), bank: "agent:main", text: "deploys are on Monday", provenance: { at: 1 } },
		{ id: idOf(2), bank: "person:telegram/bot/7", text: "likes tea", provenance },
		{ id: idOf(3), bank: "agent:main", text: "tea is at five", provenance: { at: 3 } },
	];
	await rig.bus.write(notes.map((note) => memoryWrites.add(note, LIMITS)));
	return rig;
}

const idsOf = async (response: Promise<Response>) =>
	((await (await response).json()) as { items: { memory_id: string }[] }).items.map(({ memory_id }) => memory_id);

it("A17: says whether agents may note anything", async () => {
	const enabledOf = async (rig: Rig) => ((await (await rig.get("/v1/memory")).json()) as { enabled: boolean }).enabled;
	const off = await rigForTest();
	expect([await enabledOf(await withNotes()), await enabledOf(off)]).toEqual([true, false]);
});

it("A31: memory is listed by bank, searched by words, and forgotten", async () => {
	const rig = await withNotes();
	expect(await idsOf(rig.get("/v1/memory"))).toEqual([idOf(3), idOf(2)]);
	expect(await idsOf(rig.get(`/v1/memory?page_token=${idOf(2)}`))).toEqual([idOf(1)]);
	expect(await idsOf(rig.get("/v1/memory?bank=agent:main&page_size=1"))).toEqual([idOf(3)]);
	expect((await idsOf(rig.get("/v1/memory?query=TEA"))).toSorted()).toEqual([idOf(2), idOf(3)]);
	expect(await idsOf(rig.get(`/v1/memory?query=${encodeURIComponent('tea" OR text:*')}&bank=agent:main`))).toEqual([
		idOf(3),
	]);
	const found = await expectAnswer("listMemory", await rig.get("/v1/memory?bank=person:telegram/bot/7"));
	expect((found as { items: object[] }).items).toEqual([
		{
			memory_id: idOf(2),
			bank: "person:telegram/bot/7",
			text: "likes tea",
			created_at: "1970-01-01T00:00:00.001Z",
			run_id: "run_1",
			agent: "main",
			channel: "telegram",
			account: "bot",
			sender: "7",
		},
	]);
	const gone = await rig.get(`/v1/memory/${idOf(2)}`, {}, "DELETE");
	expect([gone.status, await gone.json()]).toEqual([200, {}]);
	expect((await rig.get(`/v1/memory/${idOf(2)}`, {}, "DELETE")).status).toBe(404);
	expect(await idsOf(rig.get("/v1/memory?query=likes"))).toEqual([]);
	const changes = await (await rig.get("/v1/memory/changes?page_size=1")).text();
	expect(JSON.parse(changes)).toMatchObject({
		changes: [
			{
				sequence: "4",
				memory_id: idOf(2),
				bank: "person:telegram/bot/7",
				event_type: "MEMORY_EVENT_TYPE_FORGOTTEN",
				at: "1970-01-01T00:00:00.009Z",
				sender: "",
			},
		],
		next_before: "4",
	});
	expect(await (await rig.get("/v1/memory/changes?before=4")).text()).not.toContain("tea");
});
