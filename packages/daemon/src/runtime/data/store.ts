/** The one database file, with the Bus, the Ledger and the rows of the services in it. */

import { type ErrorCode, NexusError, toNexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Bus, createBus, sqliteStorage, storeClock } from "../../bus/bus.ts";
import { type Ledger, sqliteLedger } from "../../ledger/ledger.ts";
import { createTelling } from "../../services/audit/mappers.ts";
import { type Durability, openSqlite, SchemaTooNew, type SqliteFile } from "../../std/sqlite/sqlite.ts";
import { type StoreFailure, storeFailure } from "../../std/store-failure.ts";
import { type ServiceRows, serviceRows } from "./tables.ts";

export interface Store {
	bus: Bus;
	ledger: Ledger;
	rows: ServiceRows;
	/** Shows the store's time: for times that are stored and compared. */
	clock: Clock;
	/** How long a daemon of a shared store may go without a renewal. */
	leaseMs: number;
	close(): Promise<void>;
}

export interface StoreOptions {
	durability: Durability;
	/** How long a failing commit is tried again before what waits for it is given up; the Bus has a default. */
	storeRetryMsMax?: number;
	/** Other daemons use the file, too. */
	isShared?: boolean;
	leaseMs?: number;
}

/** How long a daemon may be silent before others may take over what it owns. */
export const LEASE_MS = 10_000;

/** Rejects with the file's name and the way out when it is damaged, unwritable, or written by a newer program. */
export async function openStore(path: string, options: StoreOptions, log: Log, guard?: () => void): Promise<Store> {
	let file: SqliteFile | undefined;
	try {
		const opened = openSqlite(path, options.durability, guard);
		file = opened;
		const ledger = sqliteLedger(opened);
		const rows = serviceRows(opened);
		const { isShared: shared = false, leaseMs = LEASE_MS } = options;
		const limits = { commitRetryMsMax: options.storeRetryMsMax, leaseMs };
		const clock: Clock = storeClock({ now: () => bus.now() }, systemClock);
		const tell = createTelling(clock);
		const bus: Bus = createBus({ storage: sqliteStorage(opened), shared, clock: systemClock, log, limits, tell });
		return {
			bus,
			ledger,
			rows,
			clock,
			leaseMs,
			async close() {
				await bus.close();
				opened.close();
			},
		};
	} catch (cause) {
		file?.close();
		throw storeError(cause, path);
	}
}

/** Any error of opening, migrating or reading the file at `path`, with what to do about it. */
export function storeError(cause: unknown, path: string): NexusError {
	if (cause instanceof SchemaTooNew) return new NexusError("data_loss", cause.message, { cause });
	const failure = storeFailure(cause);
	if (failure === undefined) return toNexusError(cause);
	const [code, what] = FAILURES[failure.kind];
	return new NexusError(code, `${path}: ${what} (${failure.message})`, { cause });
}

const FAILURES: Record<StoreFailure["kind"], [code: ErrorCode, what: string]> = {
	corrupt: [
		"data_loss",
		"the database is damaged. Restore it from a backup, or move it away with its -wal and -shm files and store.json to start empty",
	],
	unwritable: [
		"unavailable",
		"the database cannot be opened or written. Check that the folder exists and its permissions",
	],
	full: ["unavailable", "the disk is full or failing. Free space, then start again"],
	locked: ["conflict", "another process holds the database. Stop it, or choose another data folder"],
	unreachable: ["unavailable", "the database cannot be reached. Check its address, and that its server runs"],
	duplicate: ["conflict", "it is already stored"],
	refused: ["conflict", "the database does not accept these values"],
	outdated: ["unavailable", "the database has the tables of another version. Start the version that wrote it"],
	other: ["internal", "the database failed"],
};
