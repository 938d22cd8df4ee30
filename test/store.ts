/**
 * Where suites get their Bus and Ledger from: one place, so that all of them can run on another store. `NEXUS_TEST_STORE=slow` puts an await
 * at every call of it.
 */

import { onTestFinished } from "vitest";
import { type Bus, type BusOptions, createBus, sqliteStorage } from "../src/bus/bus.ts";
import { type Ledger, sqliteLedger } from "../src/ledger/ledger.ts";
import type { AtOnce } from "../src/ledger/thing.ts";
import { Refused } from "../src/protocol/protocol.ts";
import { openSqlite, type SqliteFile } from "../src/std/sqlite.ts";
import type { Write } from "../src/std/write.ts";
import { slowBus, slowLedger } from "./slow.ts";

export interface TestStore {
	file: SqliteFile;
	bus: Bus;
	ledger: Ledger;
	/** What is on record, read past everything that stands before the file. */
	stored: { readonly [Thing in Exclude<keyof Ledger, "snapshot">]: AtOnce<Ledger[Thing]> };
	close(): Promise<void>;
}

export interface StoreOptions extends Partial<Omit<BusOptions, "storage">> {
	/** Every call takes some turns of the loop. */
	slow?: boolean;
}

export type OpenStore = (path: string, options?: StoreOptions) => TestStore;

const isSlow = process.env.NEXUS_TEST_STORE === "slow";

export const openStore: OpenStore = (path, { slow = isSlow, ...options } = {}) => {
	const file = openSqlite(path, "process");
	const ledger = sqliteLedger(file);
	const bus = createBus({ ...options, storage: sqliteStorage(file) });
	return {
		file,
		bus: slow ? slowBus(bus) : bus,
		ledger: slow ? slowLedger(ledger) : ledger,
		stored: ledger as unknown as TestStore["stored"],
		async close() {
			await bus.close();
			file.close();
		},
	};
};

export interface ForTestOptions extends StoreOptions {
	/** Default: in memory. */
	path?: string;
	/** Its process dies: nothing of it is closed at the end of the test. */
	dies?: boolean;
}

/** A store for one test. */
export function storeForTest({ path = ":memory:", dies = false, ...options }: ForTestOptions = {}) {
	const store = openStore(path, options);
	if (!dies) onTestFinished(() => store.close());
	return { ...store, look: lookInto(store) };
}

export type Look = ReturnType<typeof lookInto>;

/** Short words for what tests look up most. */
export const lookInto = ({ stored: { turns, inbox, sessions } }: TestStore) => ({
	turn: turns.get,
	turns: turns.list,
	event: inbox.get,
	events: inbox.list,
	queued: () => inbox.queued(),
	sessions: sessions.list,
});

/** Refuses units with a write that `refuses` says so of, as a table would that cannot hold it. */
export function refuseWrites({ file: { things } }: Pick<TestStore, "file">, refuses: (write: Write) => boolean): void {
	const apply = things.apply.bind(things);
	things.apply = (write, facts) => {
		if (refuses(write)) throw new Refused("conflict", "CHECK constraint failed");
		apply(write, facts);
	};
}
