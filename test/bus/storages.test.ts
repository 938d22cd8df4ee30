/** The rules of the Bus on every storage: alone, behind a bad connection, and with two Buses on one store. */

import { seed } from "../seed.ts";
import { busContract, type StorageUnderTest } from "./contract.ts";
import { faulty } from "./faulty.ts";
import { sharedContract } from "./shared.ts";
import { inMemory, inSqlite } from "./stores.ts";

const STORES: [string, () => StorageUnderTest][] = [
	["memory", inMemory],
	["SQLite", () => inSqlite("process")],
];

for (const [name, make] of STORES) {
	busContract(name, make);
	busContract(`${name} behind a bad connection`, () => {
		const store = make();
		return { ...store, patient: false, open: (now) => faulty(store.open(now), seed) };
	});
	sharedContract(name, make);
}
busContract("SQLite, durability power", () => inSqlite("power"));
