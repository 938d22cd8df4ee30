/** I1: a file that may not be written now takes no write of the ledger, however small. */

import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type Pairing, sqliteDeliveries, sqliteLedger, sqlitePairings } from "../../src/ledger/ledger.ts";
import { openSqlite } from "../../src/std/sqlite.ts";
import { freshFolder } from "../runtime/folder.ts";

it("I1: every write asks the guard first", () => {
	let lost = false;
	const file = openSqlite(join(freshFolder(), "x.db"), "process", () => {
		if (lost) throw new Error("the directory is gone");
	});
	onTestFinished(() => file.close());
	const ledger = sqliteLedger(file);
	const pairings = sqlitePairings(file);
	const deliveries = sqliteDeliveries(file);
	const person: Pairing = {
		channel: "telegram",
		account: "bot",
		sender: "7",
		code: "CODE",
		state: "pending",
		target: { to: "7" },
		createdAt: 1,
		expiresAt: 10,
		toldAt: 1,
	};
	pairings.save(person);
	const address = { runId: "run_1", channel: "telegram", account: "bot", target: { to: "7" }, options: {} };
	deliveries.open({ id: "dlv_1", ...address, createdAt: 1 });
	lost = true;
	const writes: (() => unknown)[] = [
		() => pairings.save({ ...person, state: "approved" }),
		() => pairings.remove(person),
		() => pairings.expire(100),
		() => deliveries.setMode("dlv_1", "stream", 2),
		() => deliveries.finish("dlv_1", "failed", "no", 2),
		() => deliveries.reopen("dlv_1", 2),
		() => ledger.dispose("evt_1", { state: "rejected", because: "no" }),
		() => ledger.retrace("run_1", {} as never),
		() => ledger.forgetRejected(0),
	];
	for (const write of writes) expect(write, String(write)).toThrow("the directory is gone");
	lost = false;
	expect(pairings.get(person)?.state).toBe("pending");
});
