/** Times that are compared are the store's (ST24), also in a daemon whose own clock is a minute behind it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { createBus, sqliteStorage, storeClock } from "../../packages/daemon/src/bus/bus.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { createPairingService, PAIRING_LIMITS } from "../../packages/daemon/src/nex/access/pairing.ts";
import { serviceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import { once } from "../../packages/daemon/src/services/kit/once.ts";
import { IDEMPOTENCY_KEPT_MS } from "../../packages/daemon/src/services/kit/rows.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import type { Write } from "../../packages/daemon/src/std/write.ts";
import { ask, engineOf, type Play, text } from "../broker/rig.ts";
import { type ManualClock, manualClock } from "../clock.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";

/** The store, as daemons use it whose own clocks are behind it by so much. */
function daemons(clock: ManualClock, ...behindMs: number[]) {
	const folder = mkdtempSync(join(tmpdir(), "nexus-clock-"));
	const parts = behindMs.map((behind) => {
		const file = openSqlite(join(folder, "nexus.db"), "process");
		const ledger = sqliteLedger(file);
		const rows = serviceRows(file);
		const own = { ...clock, now: () => clock.now() - behind };
		const storage = sqliteStorage(file, () => clock.now());
		// Days pass in these tests, without a look at what the others write.
		const limits = { lookMs: Infinity, watchMs: Infinity };
		const bus = createBus({ ...quiet, storage, clock: own, shared: true, limits });
		return { bus, ledger, rows, clock: storeClock(bus, own), close: () => bus.close().then(() => file.close()) };
	});
	onTestFinished(async () => {
		for (const { close } of parts) await close();
		rmSync(folder, { recursive: true, maxRetries: 20 });
	});
	return parts;
}

test("ST24: a pairing code is valid for its hour of the store's time, wherever it is entered", async () => {
	const clock = manualClock(1_000_000);
	const stranger = { channel: "telegram", account: "bot", sender: "ann", target: { to: "c1" } };
	const desks = daemons(clock, 60_000, -60_000, 0).map(({ bus, ledger: { pairings }, clock }) =>
		createPairingService({ bus, pairings, clock, random: Math.random, limits: PAIRING_LIMITS }),
	);
	const [one, two, three] = desks as [(typeof desks)[0], (typeof desks)[0], (typeof desks)[0]];
	const { code } = await one.ask(stranger);
	const { code: other } = await two.ask({ ...stranger, sender: "bob" });
	clock.advance(PAIRING_LIMITS.pairingMs - 1);
	expect(await two.approve(code!)).toMatchObject({ state: "approved", approvedAt: clock.now() });
	clock.advance(1);
	for (const desk of [one, two, three]) await expect(desk.approve(other!)).rejects.toMatchObject({ code: "expired" });
});

test("ST24: an idempotency key counts for its time by the store's clock", async () => {
	const clock = manualClock(1_000_000);
	const [one, two] = daemons(clock, 60_000, -60_000) as [ReturnType<typeof daemons>[0], ReturnType<typeof daemons>[0]];
	const request = ({ rows, clock, bus }: typeof one, result: string) =>
		once({ rows, clock }, { appId: "shop", key: "k", body: {}, result }, (claim: readonly Write[]) => bus.write(claim));
	expect(await request(one, "run_1")).toMatchObject({ id: "run_1", isFirst: true });
	clock.advance(IDEMPOTENCY_KEPT_MS - 1);
	expect(await request(two, "run_2")).toMatchObject({ id: "run_1", isFirst: false });
	clock.advance(2);
	expect(await request(one, "run_3")).toMatchObject({ id: "run_3", isFirst: true });
});

test("ST24: a question expires when the store's clock says so, also for the daemon that finds it on record", async () => {
	const clock = manualClock(1_000_000);
	const play: Play = async function* (_request, signal, { answer }) {
		const asking = { id: "q1", kind: "approval", state: "pending" } as const;
		yield { type: "tool", callId: "c1", name: "bash", status: "progress", args: {}, asking };
		yield text((await answer!("q1", signal)).state);
	};
	const brokers = daemons(clock, 60_000, -60_000).map(({ bus, ledger, clock }) =>
		createBroker({ ...quiet, bus, ledger, clock, engine: engineOf(play), approvals: { waitMs: 10_000 } }),
	);
	const [one, two] = brokers as [(typeof brokers)[0], (typeof brokers)[0]];
	await ask(one, "s", "go");
	await until("the question", () => one.approvals.pending().length === 1);
	const [row] = one.approvals.pending();
	expect(row).toMatchObject({ createdAt: clock.now(), expiresAt: clock.now() + 10_000 });
	await two.recover();
	expect(two.approvals.pending()).toHaveLength(1);
	clock.advance(9999);
	expect([one, two].map(({ approvals }) => approvals.pending().length)).toEqual([1, 1]);
	clock.advance(1);
	await until("both know", () => [one, two].every(({ approvals }) => approvals.pending().length === 0));
});
