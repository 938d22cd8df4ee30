/** Ownership of deliveries: each daemon runs its own, and takes over only those of a dead one. */

import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { type OpenStore, openStore } from "../../store.ts";
import { beginRun, declareDead, finishedRun, type Rig, rigForTest, sharingRig, until } from "./rig.ts";

const account = { channel: "full", id: "main" };
const target = { to: "c1" };

const daemon = (first?: Rig): Rig => sharingRig((channel, settings) => ({ full: channel("full", settings) }), first);

const row = (id: string, runId: string) => ({
	id,
	runId,
	channel: "full",
	account: "main",
	target,
	options: {},
	createdAt: Date.now(),
});
const creations = (rig: Rig) => rig.calls().filter(({ op }) => op === "create");
const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

it("ST19, I7: a delivery is taken over when its daemon is dead, not before; that one ends without a terminal", async () => {
	const one = daemon();
	const run = await beginRun(one.bus);
	const { id } = await one.outbound.deliver({ runId: run.runId, account, target });
	run.text("Hello,");
	await until(() => one.deliveries.get(id)!.messages[0]?.shown === 6, "the beginning is visible");
	const pid = one.outbound.accounts()[0]!.processes.stream!.pid!;

	const two = daemon(one);
	await two.outbound.start();
	expect(two.outbound.live).toBe(0);

	declareDead(one);
	await two.outbound.start();
	expect(two.outbound.live).toBe(1);
	await one.outbound.settled(id);
	expect(one.outbound.live).toBe(0);
	await until(() => !isAlive(pid), "its adapter is gone");

	await expect(one.outbound.deliver({ text: "late", account, target })).rejects.toMatchObject({ refusal: "fenced" });
	await run.endIn(two.bus, " world", false);
	expect(await two.outbound.settled(id)).toMatchObject({ state: "complete" });
	expect(two.visible("c1")).toEqual([]);
	expect(one.visible("c1")).toEqual(["Hello, world"]);
});

it("ST19: of what two daemons find, each delivery goes to one of them", async () => {
	const dead = daemon();
	const runId = await finishedRun(dead.bus, ["Hello."]);
	const chats = ["c1", "c2", "c3", "c4"];
	await dead.bus.write(chats.map((to) => deliveryWrites.open({ ...row(`dlv_${to}`, runId), target: { to } })));
	const others = [daemon(dead), daemon(dead)];
	declareDead(dead);
	await Promise.all(others.map(({ outbound }) => outbound.start()));
	for (const to of chats) {
		await Promise.all(others.map(({ outbound }) => outbound.settled(`dlv_${to}`)));
		expect(dead.deliveries.get(`dlv_${to}`)).toMatchObject({ state: "complete" });
	}
	expect(creations(dead)).toHaveLength(chats.length);
});

it("ST12: what is asked for twice at once is one delivery, also when two daemons are asked", async () => {
	const one = daemon();
	const two = daemon(one);
	const runId = await finishedRun(one.bus, ["Hello."]);
	const asked = [one, one, two, two].map(({ outbound }) => outbound.deliver({ runId, account, target }));
	const ids = new Set((await Promise.all(asked)).map(({ id }) => id));
	expect(ids.size).toBe(1);
	const [id] = [...ids];
	await Promise.all([one, two].map(({ outbound }) => outbound.settled(id!)));
	expect(one.deliveries.get(id!)).toMatchObject({ state: "complete" });
	expect(creations(one)).toHaveLength(1);
});

it("ST10: one that failed is taken up again by one daemon, also when two are asked", async () => {
	const one = daemon();
	const two = daemon(one);
	const runId = await finishedRun(one.bus, ["Hello."]);
	await one.bus.write([
		deliveryWrites.open(row("dlv_f", runId)),
		deliveryWrites.finish("dlv_f", "failed", "it was not to be", Date.now()),
	]);
	await Promise.all([one, two].map(({ outbound }) => outbound.deliver({ runId, account, target })));
	expect(one.outbound.live + two.outbound.live).toBe(1);
	await Promise.all([one, two].map(({ outbound }) => outbound.settled("dlv_f")));
	expect(one.deliveries.get("dlv_f")).toMatchObject({ state: "complete" });
	expect(creations(one)).toHaveLength(1);
});

it("ST12: the second caller gets the delivery that the first one opened", async () => {
	const rig = daemon();
	const runId = await finishedRun(rig.bus, ["Hello."]);
	const { write } = rig.bus;
	rig.bus.write = async (writes, patienceMs) => {
		rig.bus.write = write;
		// Another daemon was faster by a moment.
		await write.call(rig.bus, [deliveryWrites.open(row("dlv_w", runId))]);
		await write.call(rig.bus, writes, patienceMs);
	};
	expect(await rig.outbound.deliver({ runId, account, target })).toMatchObject({ id: "dlv_w", state: "active" });
	// It is that one's to carry.
	expect(rig.outbound.live).toBe(0);
});

it("I7: a delivery is recorded with its run's begin, and only for configured accounts", async () => {
	const rig = daemon();
	const { outbound, bus } = rig;
	const runId = await finishedRun(bus, ["Hello."]);
	expect(() => outbound.planDelivery({ runId, account: { channel: "full", id: "nobody" }, target })).toThrow(
		NexusError,
	);
	const { delivery, write } = outbound.planDelivery({ runId, account, target, options: { tools: false } });
	expect(rig.deliveries.get(delivery.id)).toBeUndefined();
	await bus.write([write]);
	outbound.launch(delivery);
	expect(await outbound.settled(delivery.id)).toMatchObject({ state: "complete", options: { tools: false } });
	expect(rig.visible("c1")).toEqual(["Hello."]);
});

it("ST11: texts for a chat go out in the order of the calls, whichever is on record first", async () => {
	const open: OpenStore = (path) => {
		const store = openStore(path);
		const { deliveries } = store.ledger;
		let calls = 0;
		const list: typeof deliveries.list = async (query) => {
			if (++calls === 1)
				await until(() => store.stored.deliveries.list({ limit: 9 }).length > 0, "the second is on record");
			return deliveries.list(query);
		};
		return { ...store, ledger: { ...store.ledger, deliveries: { ...deliveries, list } } };
	};
	const rig = rigForTest((channel) => ({ full: channel("full") }), { open });
	const asked = ["one", "two"].map((text) => rig.outbound.deliver({ text, account, target }));
	for (const { id } of await Promise.all(asked)) await rig.outbound.settled(id);
	expect(rig.visible("c1")).toEqual(["one", "two"]);
});
