/** The one database file, with the Bus, the Ledger and the rows of the services in it. */

import { systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Bus, createBus, sqliteStorage } from "../../bus/bus.ts";
import { type Ledger, sqliteLedger, storeFailure } from "../../ledger/ledger.ts";
import { createTelling } from "../../services/audit/mappers.ts";
import { type Durability, openSqlite, type SqliteFile } from "../../std/sqlite.ts";
import { type ServiceRows, serviceRows } from "./tables.ts";

export interface Store {
	bus: Bus;
	ledger: Ledger;
	rows: ServiceRows;
	close(): Promise<void>;
}

export interface StoreOptions {
	durability: Durability;
	/** How long a failing commit is tried again before what waits for it is given up; the Bus has a default. */
	storeRetryMsMax?: number;
}

/** Throws with the file's name and the way out when it is damaged, unwritable, or written by a newer program. */
export function openStore(path: string, options: StoreOptions, log: Log, guard?: () => void): Store {
	let file: SqliteFile | undefined;
	try {
		const opened = openSqlite(path, options.durability, guard);
		file = opened;
		const ledger = sqliteLedger(opened);
		const rows = serviceRows(opened);
		const { storeRetryMsMax } = options;
		const limits = storeRetryMsMax === undefined ? {} : { commitRetryMsMax: storeRetryMsMax };
		const bus = createBus({ storage: sqliteStorage(opened), log, limits, tell: createTelling(systemClock) });
		return {
			bus,
			ledger,
			rows,
			async close() {
				await bus.close();
				opened.close();
			},
		};
	} catch (cause) {
		file?.close();
		throw storeFailure(cause, path);
	}
}
