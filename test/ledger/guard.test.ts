/** I1: a file that may not be written now takes no write of the ledger, however small. */

import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { type Pairing, pairingWrites } from "../../packages/daemon/src/ledger/pairings/port.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { freshFolder } from "../runtime/folder.ts";
import { commit } from "./rig.ts";

it("I1: a commit asks the guard first", async () => {
	let lost = false;
	const file = openSqlite(join(freshFolder(), "x.db"), "process", () => {
		if (lost) throw new Error("the directory is gone");
	});
	onTestFinished(() => file.close());
	const { pairings } = sqliteLedger(file);
	const person: Pairing = {
		channel: "telegram",
		account: "bot",
		sender: "7",
		code: "CODE",
		state: "pending",
		target: { to: "7" },
		createdAt: 1,
		expiresAt: 10,
		sentAt: 1,
	};
	commit(file, [pairingWrites.save(person)]);
	lost = true;
	expect(() => commit(file, [pairingWrites.save({ ...person, state: "approved" })])).toThrow("the directory is gone");
	expect(() => commit(file, [pairingWrites.expire(100)])).toThrow("the directory is gone");
	lost = false;
	expect((await pairings.get(person))?.state).toBe("pending");
});
