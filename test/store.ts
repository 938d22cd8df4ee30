/** Where suites get their Bus and Ledger from: one place, so that all of them can run on another store. */

import { type Bus, type BusOptions, createBus, sqliteStorage } from "../src/bus/bus.ts";
import { type Ledger, sqliteLedger } from "../src/ledger/ledger.ts";
import type { AtOnce } from "../src/ledger/thing.ts";
import { openSqlite } from "../src/std/sqlite.ts";

export interface TestStore {
	bus: Bus;
	ledger: Ledger;
	/** What is on record, read past everything that stands before the file. */
	stored: { readonly [Thing in Exclude<keyof Ledger, "snapshot">]: AtOnce<Ledger[Thing]> };
	close(): Promise<void>;
}

export type OpenStore = (path: string, options?: Omit<BusOptions, "storage">) => TestStore;

export const openStore: OpenStore = (path, options = {}) => {
	const file = openSqlite(path, "process");
	const ledger = sqliteLedger(file);
	const bus = createBus({ ...options, storage: sqliteStorage(file) });
	return {
		bus,
		ledger,
		stored: ledger as unknown as TestStore["stored"],
		async close() {
			await bus.close();
			file.close();
		},
	};
};
