/** Ownership of deliveries: each daemon runs its own, and takes over only those of a dead one. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, expect, it } from "vitest";
import { deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { type OpenStore, openStore } from "../../store.ts";
import { beginRun, createRigWith, finishedRun, type Rig, until } from "./rig.ts";

let rigs: Rig[] = [];
afterEach(async () => {
	// Rigs that use another's files end first.
	for (const rig of rigs.reverse()) await rig.close();
	rigs = [];
});

const account = { channel: "full", id: "main" };
const target = { to: "c1" };

const sharing =
	(path?: string): OpenStore =>
	(own) =>
		openStore(path ?? own, { shared: true });

/** A separate daemon on the first one's store and platform. */
function daemon(first?: Rig): Rig {
	const settings: Record<string, string> = first ? { file: join(first.dir, "platform.jsonl") } : {};
	const open = sharing(first && join(first.dir, "nexus.db"));
	const rig = createRigWith((channel) => ({ full: channel("full", settings) }), { open });
	rigs.push(rig);
	return rig;
}

/** As a daemon does that has waited long enough for a sign of life. */
function declareDead(first: Rig, { bus }: Rig): void {
	const db = new DatabaseSync(join(first.dir, "nexus.db"));
	db.prepare("UPDATE node SET dead = 1 WHERE id = ?").run(bus.node);
	db.close();
}

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

	declareDead(one, one);
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
	const now = Date.now();
	await dead.bus.write(
		chats.map((to) =>
			deliveryWrites.open({
				id: `dlv_${to}`,
				runId,
				channel: "full",
				account: "main",
				target: { to },
				options: {},
				createdAt: now,
			}),
		),
	);
	const others = [daemon(dead), daemon(dead)];
	declareDead(dead, dead);
	await Promise.all(others.map(({ outbound }) => outbound.start()));
	for (const to of chats) {
		await Promise.all(others.map(({ outbound }) => outbound.settled(`dlv_${to}`)));
		expect(dead.deliveries.get(`dlv_${to}`)).toMatchObject({ state: "complete" });
	}
	expect(dead.calls().filter(({ op }) => op === "create")).toHaveLength(chats.length);
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
	expect(one.calls().filter(({ op }) => op === "create")).toHaveLength(1);
});

it("ST10: one that failed is taken up again by one daemon, also when two are asked", async () => {
	const one = daemon();
	const two = daemon(one);
	const runId = await finishedRun(one.bus, ["Hello."]);
	const row = { id: "dlv_f", runId, channel: "full", account: "main", target, options: {}, createdAt: Date.now() };
	await one.bus.write([
		deliveryWrites.open(row),
		deliveryWrites.finish("dlv_f", "failed", "it was not to be", Date.now()),
	]);
	await Promise.all([one, two].map(({ outbound }) => outbound.deliver({ runId, account, target })));
	expect(one.outbound.live + two.outbound.live).toBe(1);
	await Promise.all([one, two].map(({ outbound }) => outbound.settled("dlv_f")));
	expect(one.deliveries.get("dlv_f")).toMatchObject({ state: "complete" });
	expect(one.calls().filter(({ op }) => op === "create")).toHaveLength(1);
});

it("ST12: the second caller gets the delivery that the first one opened", async () => {
	const rig = daemon();
	const runId = await finishedRun(rig.bus, ["Hello."]);
	const winner = { id: "dlv_w", runId, channel: "full", account: "main", target, options: {}, createdAt: Date.now() };
	const { write } = rig.bus;
	rig.bus.write = async (writes, patienceMs) => {
		rig.bus.write = write;
		// Another daemon was faster by a moment.
		await write.call(rig.bus, [deliveryWrites.open(winner)]);
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
	const rig = createRigWith((channel) => ({ full: channel("full") }), { open });
	rigs.push(rig);
	const asked = ["one", "two"].map((text) => rig.outbound.deliver({ text, account, target }));
	for (const { id } of await Promise.all(asked)) await rig.outbound.settled(id);
	expect(rig.visible("c1")).toEqual(["one", "two"]);
});
