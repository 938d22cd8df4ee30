/** Where suites get their Bus and Ledger from: one place, so that all of them can run on another store. */

import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { type Bus, type BusOptions, createBus, sqliteStorage } from "../src/bus/bus.ts";
import { type Ledger, sqliteLedger } from "../src/ledger/ledger.ts";
import type { AtOnce } from "../src/ledger/thing.ts";
import { openSqlite } from "../src/std/sqlite.ts";
import { FAULTS, faulty } from "./bus/faulty.ts";

type Things = Omit<Ledger, "snapshot">;

export interface TestStore {
	bus: Bus;
	ledger: Ledger;
	/** What is on record, read past everything that stands before the file. */
	stored: { readonly [Thing in keyof Things]: AtOnce<Ledger[Thing]> };
	close(): Promise<void>;
}

export type OpenStore = (path: string, options?: Omit<BusOptions, "storage">) => TestStore;

/** Embedded: it answers at once. For suites that count turns of the loop, or move a clock by them. */
export const openPlainStore: OpenStore = (path, options) => open(path, options);

/** With the seed of a bad connection in `NEXUS_FAULTY`, behind one (ST27). */
export const openStore: OpenStore = (path, options) => open(path, options, seeds.next().value);

const first = Number(process.env.NEXUS_FAULTY);
const seeds = (function* () {
	for (let n = 0; ; n++) yield first > 0 ? first + n : undefined;
})();

function open(path: string, options: Omit<BusOptions, "storage"> = {}, seed?: number): TestStore {
	const file = openSqlite(path, "process");
	const ledger = sqliteLedger(file);
	const storage = sqliteStorage(file);
	const bus = createBus({ ...options, storage: seed === undefined ? storage : faulty(storage, seed) });
	return {
		bus,
		ledger: seed === undefined ? ledger : late(ledger, seed),
		stored: ledger as unknown as TestStore["stored"],
		async close() {
			await bus.close();
			file.close();
		},
	};
}

/** Reads that take a while, each a different one. */
function late(ledger: Ledger, seed: number): Ledger {
	const random = fc.sample(fc.infiniteStream(fc.nat(FAULTS.turnsMax)), { numRuns: 1, seed })[0]!;
	const slow = <T extends object>(thing: T): T =>
		new Proxy(thing, {
			get(_, name: string & keyof T) {
				const member = thing[name];
				if (typeof member !== "function") return slow(member as object);
				return async (...args: unknown[]): Promise<unknown> => {
					for (let turns = random.next().value as number; turns > 0; turns--) await setImmediate();
					return member.apply(thing, args) as unknown;
				};
			},
		});
	return slow(ledger);
}
