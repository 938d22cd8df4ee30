import { afterEach, beforeEach, expect, test } from "vitest";
import { type Pairing, type Pairings, sqlitePairings } from "../../src/ledger/ledger.ts";
import { openSqlite, type SqliteFile } from "../../src/std/sqlite.ts";

let file: SqliteFile;
let pairings: Pairings;
beforeEach(() => {
	file = openSqlite(":memory:", "process");
	pairings = sqlitePairings(file);
});
afterEach(() => file.close());

const pairingOf = (sender: string, fields: Partial<Pairing> = {}): Pairing => ({
	...{ channel: "telegram", account: "bot", sender, code: `CODE${sender}`, state: "pending", target: { to: sender } },
	...{ createdAt: 1, expiresAt: 10, toldAt: 1 },
	...fields,
});

test("a pairing comes back as it was saved, by person and by code", () => {
	const full = pairingOf("7", { senderName: "Ann", state: "approved", approvedAt: 5 });
	pairings.save(full);
	expect(pairings.get(full)).toEqual(full);
	expect(pairings.byCode("CODE7")).toEqual(full);
	expect(pairings.get({ ...full, account: "other" })).toBeUndefined();
});

test("there is one per person, and a code belongs to one person", () => {
	pairings.save(pairingOf("7"));
	pairings.save(pairingOf("7", { code: "NEW" }));
	expect(pairings.list()).toEqual([pairingOf("7", { code: "NEW" })]);
	expect(() => pairings.save(pairingOf("8", { code: "NEW" }))).toThrow();
});

test("pending ones are counted per account and expire; approved ones stay", () => {
	pairings.save(pairingOf("1"));
	pairings.save(pairingOf("2", { createdAt: 2, expiresAt: 20 }));
	pairings.save(pairingOf("3", { createdAt: 3, state: "approved" }));
	expect(pairings.pending("telegram", "bot")).toBe(2);
	expect(pairings.pending("telegram", "other")).toBe(0);
	expect(pairings.expire(10)).toBe(1);
	expect(pairings.list().map(({ sender }) => sender)).toEqual(["3", "2"]);
	expect(pairings.remove(pairingOf("3"))).toBe(true);
	expect(pairings.remove(pairingOf("3"))).toBe(false);
});
