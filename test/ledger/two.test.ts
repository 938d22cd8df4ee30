/** Two Ledgers on one store: what each of them may rely on while the other writes. */

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Batch, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import type { LogWrite } from "../../packages/daemon/src/bus/storage.ts";
import { deliveryWrites } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { sessionSnapshot } from "../../packages/daemon/src/ledger/ledger.ts";
import { pairingWrites } from "../../packages/daemon/src/ledger/pairings/port.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import type { Write } from "../../packages/daemon/src/std/write.ts";
import { hasPostgres } from "../postgres-server.ts";
import { freshFolder } from "../runtime/folder.ts";
import { eventOf, freshDatabase, openLedger, turnOf } from "./rig.ts";

const duplicate = expect.objectContaining({ refusal: "duplicate" });
const conflict = expect.objectContaining({ refusal: "conflict" });
const request = { runId: "run_1", channel: "c", account: "a", target: { to: "x" }, options: {}, createdAt: 1 };
const origin = { channel: "telegram", account: "bot", sourceId: "42", sender: "7" };

/** Nodes 1 and 2; `mark` says which of them are dead. */
function two() {
	const path = join(freshFolder(), "nexus.db");
	const left = openLedger(path, 1);
	const right = openLedger(path, 2);
	const mark = (id: number, dead: boolean) => {
		const row =
			"INSERT INTO node (id, name, renewed_at, dead) VALUES (?1, 'n', 0, ?2) ON CONFLICT DO UPDATE SET dead = ?2";
		left.file.db.prepare(row).run(id, Number(dead));
	};
	mark(1, false);
	mark(2, false);
	return { left, right, mark };
}

describe("two ledgers on one store", () => {
	test("ST12: a message is accepted once, by key and by source", async () => {
		const { left, right } = two();
		left.write(inboxWrites.accept(eventOf("evt_1", { idempotencyKey: "k", origin })));
		expect(() => right.write(inboxWrites.accept(eventOf("evt_2", { idempotencyKey: "k" })))).toThrow(duplicate);
		expect(() => right.write(inboxWrites.accept(eventOf("evt_3", { origin })))).toThrow(duplicate);
		expect((await right.ledger.inbox.byKey("main", "k"))?.eventId).toBe("evt_1");
		expect(await right.ledger.inbox.list({ limit: 9 })).toHaveLength(1);
	});

	test("ST10: one of two starts wins", async () => {
		const { left, right } = two();
		left.write(inboxWrites.accept(eventOf("evt_1")));
		const started = (runId: string) => inboxWrites.dispose("evt_1", { state: "started", runId }, ["queued"]);
		right.write(started("run_right"));
		expect(() => left.write(turnWrites.settle(turnOf("run_left")), started("run_left"))).toThrow(conflict);
		expect((await left.ledger.inbox.get("evt_1"))?.disposition).toEqual({ state: "started", runId: "run_right" });
		expect(await left.ledger.turns.get("run_left")).toBeUndefined();
	});

	test("a run settles once, is delivered to a chat once, and a code is one person's", async () => {
		const { left, right } = two();
		left.write(turnWrites.settle(turnOf("run_1")), deliveryWrites.open({ ...request, id: "dlv_1" }));
		expect(() => right.write(turnWrites.settle(turnOf("run_1")))).toThrow(duplicate);
		expect(() => right.write(deliveryWrites.open({ ...request, id: "dlv_2" }))).toThrow(duplicate);
		const pairing = { channel: "c", account: "a", code: "CODE", state: "pending", target: {} } as const;
		const times = { createdAt: 1, expiresAt: 2, sentAt: 1 };
		left.write(pairingWrites.save({ ...pairing, ...times, sender: "7" }));
		expect(() => right.write(pairingWrites.save({ ...pairing, ...times, sender: "8" }))).toThrow(conflict);
		right.write(pairingWrites.remove({ ...pairing, sender: "7" }));
		expect(() => left.write(pairingWrites.remove({ ...pairing, sender: "7" }))).toThrow(conflict);
	});

	test("ST19: what a living daemon works on is not left behind; what a dead or unknown one had is", async () => {
		const { left, right, mark } = two();
		const unknown = openLedger(left.file.db.location()!, 0);
		unknown.write(inboxWrites.accept(eventOf("evt_0")), deliveryWrites.open({ ...request, id: "dlv_0" }));
		left.write(inboxWrites.accept(eventOf("evt_1")), inboxWrites.accept(eventOf("evt_started")));
		left.write(inboxWrites.dispose("evt_started", { state: "started", runId: "run_1" }, ["queued"]));
		left.write(deliveryWrites.open({ ...request, id: "dlv_1", account: "b" }));
		left.write(deliveryWrites.open({ ...request, id: "dlv_done", account: "c" }));
		left.write(deliveryWrites.finish("dlv_done", "complete", undefined, 2));
		const leftBehind = async () => [
			(await right.ledger.inbox.orphaned()).map(({ eventId }) => eventId),
			(await right.ledger.deliveries.orphaned()).map(({ id }) => id),
		];
		expect(await leftBehind()).toEqual([["evt_0"], ["dlv_0"]]);
		mark(1, true);
		expect(await leftBehind()).toEqual([
			["evt_0", "evt_1"],
			["dlv_0", "dlv_1"],
		]);
	});

	test("ST19: what is left behind is adopted once, and never from a living daemon", async () => {
		const { left, right, mark } = two();
		left.write(inboxWrites.accept(eventOf("evt_1")), deliveryWrites.open({ ...request, id: "dlv_1" }));
		expect(() => right.write(inboxWrites.adopt(["evt_1"]))).toThrow(conflict);
		expect(() => right.write(deliveryWrites.adopt(["dlv_1"]))).toThrow(conflict);
		mark(1, true);
		mark(3, false);
		const third = openLedger(left.file.db.location()!, 3);
		right.write(inboxWrites.adopt(["evt_1"]), deliveryWrites.adopt(["dlv_1"]));
		right.write(inboxWrites.adopt(["evt_1"]));
		expect(() => third.write(inboxWrites.adopt(["evt_1"]))).toThrow(conflict);
		expect(() => third.write(deliveryWrites.adopt(["dlv_1"]))).toThrow(conflict);
		expect(await third.ledger.inbox.orphaned()).toEqual([]);
		expect(await third.ledger.deliveries.orphaned()).toEqual([]);
	});

	test("ST19: one that has ended is not adopted, and of several all are or none", async () => {
		const { left, right, mark } = two();
		left.write(inboxWrites.accept(eventOf("evt_1")), inboxWrites.accept(eventOf("evt_2")));
		left.write(inboxWrites.dispose("evt_2", { state: "dropped", because: "full" }, ["queued"]));
		mark(1, true);
		expect(() => right.write(inboxWrites.adopt(["evt_1", "evt_2"]))).toThrow(conflict);
		expect((await right.ledger.inbox.orphaned()).map(({ eventId }) => eventId)).toEqual(["evt_1"]);
		expect(() => right.write(inboxWrites.adopt(["evt_none"]))).toThrow(conflict);
	});

	test("ST19: who reopens a delivery owns it", async () => {
		const { left, right, mark } = two();
		left.write(deliveryWrites.open({ ...request, id: "dlv_1" }), deliveryWrites.finish("dlv_1", "failed", "no", 2));
		right.write(deliveryWrites.reopen("dlv_1", 3));
		mark(1, true);
		expect(await left.ledger.deliveries.orphaned()).toEqual([]);
		expect(() => left.write(deliveryWrites.adopt(["dlv_1"]))).toThrow(conflict);
	});

	test("ST17: a snapshot and the chain that it is asked with are of one moment, whichever process commits meanwhile", async () => {
		const { left, right } = two();
		left.write(turnWrites.settle(turnOf("run_1")), turnWrites.settle(turnOf("run_2")));
		left.write(inboxWrites.accept(eventOf("evt_1")), inboxWrites.accept(eventOf("evt_other", { session: "other" })));
		const [asked, other] = [sqliteStorage(left.file), sqliteStorage(right.file)];
		const { node } = await other.join("right", false);
		const commit = (n: number, writes: Write[], log: LogWrite) =>
			void other.commit({ node, n, again: false, units: [{ writes, log }] });
		const [begin, all] = [Batch.of(1, ["begin"]), Batch.of(1, ["begin", "end"])];
		commit(1, [], { id: 1, create: { log: "run_3", kind: "run", chain: "session:main" }, batch: begin });
		const ask = async (session: string, page: { limit: number; before?: string }) =>
			asked.chainWith(`session:${session}`, sessionSnapshot(session, page));

		const whole = await ask("main", { limit: 9 });
		expect(whole).toMatchObject({ start: 0, head: 1, newest: { log: "run_3", head: 1 } });
		expect(whole.answer).toEqual({
			turns: [turnOf("run_2"), turnOf("run_1")],
			newestTurn: turnOf("run_2"),
			queued: [eventOf("evt_1")],
		});
		const older = { ...whole, answer: { ...whole.answer, turns: [turnOf("run_1")] } };
		expect(await ask("main", { limit: 1, before: "run_2" })).toEqual(older);
		expect(await ask("nobody", { limit: 1 })).toEqual({ start: 0, head: 0, answer: { turns: [], queued: [] } });

		// The other one settles the run after the chain was read, and before the turns are.
		const { db } = left.file;
		db.function("meanwhile", () => {
			if (!once) return 1;
			once = false;
			const settled = [turnWrites.settle(turnOf("run_3")), inboxWrites.accept(eventOf("evt_3"))];
			commit(2, settled, {
				id: 1,
				batch: Batch.of(2, ["end"]),
				cut: { first: 1, count: 2, bytes: Buffer.from(all.text) },
				seal: true,
			});
			return 1;
		});
		let once = true;
		db.exec("CREATE TEMP VIEW turns AS SELECT * FROM main.turns WHERE meanwhile()");
		expect(await ask("main", { limit: 9 })).toEqual(whole);
		expect(once).toBe(false);
		const after = await ask("main", { limit: 9 });
		expect(after).toMatchObject({ head: 2, newest: { sealedAt: expect.any(Number) } });
		expect(after.answer.turns).toHaveLength(3);
	});
});

describe.skipIf(!hasPostgres)("two ledgers on PostgreSQL that write at the same moment", () => {
	const ROUNDS = 20;

	/** The refusals of both, the winner's as undefined. */
	async function both(left: Promise<void>, right: Promise<void>) {
		const outcomes = await Promise.allSettled([left, right]);
		return outcomes.map((outcome) => (outcome.status === "rejected" ? (outcome.reason as unknown) : undefined));
	}

	test("ST12, ST10: one of two accepts a message, and one of two starts it", async () => {
		const { join } = await freshDatabase();
		const [left, right] = [await join(), await join()];
		for (let n = 0; n < ROUNDS; n++) {
			const accept = (id: string) => inboxWrites.accept(eventOf(id, { idempotencyKey: `k${n}` }));
			const accepted = await both(left.write(accept(`evt_l${n}`)), right.write(accept(`evt_r${n}`)));
			expect(accepted).toContainEqual(duplicate);
			expect(accepted).toContain(undefined);
			const { eventId } = (await left.ledger.inbox.byKey("main", `k${n}`))!;
			const start = (runId: string) => inboxWrites.dispose(eventId, { state: "started", runId }, ["queued"]);
			const started = await both(left.write(start("run_l")), right.write(start("run_r")));
			expect(started).toContainEqual(conflict);
			expect(started).toContain(undefined);
		}
		expect(await right.ledger.inbox.list({ limit: 100 })).toHaveLength(ROUNDS);
	});

	test("Z1: notices of both are numbered densely, and in the order of commits that did not overlap", async () => {
		const { join } = await freshDatabase();
		const [left, right] = [await join(), await join()];
		for (let n = 0; n < ROUNDS; n++) {
			await Promise.all([
				left.write(noticeWrites.post("audit", `l${n}`, 1)),
				right.write(noticeWrites.post("audit", `r${n}`, 1)),
				left.ledger.notices.range("audit"),
				right.ledger.notices.range("audit"),
			]);
		}
		const page = (await left.ledger.notices.read("audit", 0, 100))!;
		expect([page.first, page.count]).toEqual([1, 2 * ROUNDS]);
		const rounds = page.text.split("\n").map((text) => Number(text.slice(1)));
		expect(rounds).toEqual(rounds.toSorted((a, b) => a - b));
		expect(await right.ledger.notices.read("audit", 0, 100)).toEqual(page);
	});
});
