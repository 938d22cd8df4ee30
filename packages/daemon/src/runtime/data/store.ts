/** The one database, with the Bus, the Ledger and the rows of the services in it: a file, or a database of a PostgreSQL server. */

import { type ErrorCode, NexusError, toNexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Bus, createBus, type Storage, sqliteStorage, storeClock } from "../../bus/bus.ts";
import { type Ledger, sqliteLedger } from "../../ledger/ledger.ts";
import { createTelling } from "../../services/audit/mappers.ts";
import { type Durability, openSqlite, SchemaTooNew, type SqliteFile } from "../../std/sqlite/sqlite.ts";
import { type StoreFailure, storeFailure } from "../../std/store-failure.ts";
import type { DatabaseParts, PostgresSection } from "./postgres.ts";
import { type ServiceRows, serviceRows } from "./tables.ts";

export interface Store {
	bus: Bus;
	ledger: Ledger;
	rows: ServiceRows;
	/** Shows the store's time: for times that are stored and compared. */
	clock: Clock;
	/** How long a daemon of a shared store may go without a renewal. */
	leaseMs: number;
	/** Why commits may fail, for readers of the state. It names no path and no server. */
	trouble: string;
	close(): Promise<void>;
}

export interface StoreOptions {
	durability: Durability;
	/** How long a failing commit is tried again before what waits for it is given up; the Bus has a default. */
	storeRetryMsMax?: number;
	/** Other daemons use the file, too. */
	isShared?: boolean;
	leaseMs?: number;
	/** Left out: in a file. */
	store?: { postgres?: PostgresSection };
	/** The folder that files of the configuration are relative to. */
	base?: string;
}

/** How long a daemon may be silent before others may take over what it owns. */
export const LEASE_MS = 10_000;

/** Rejects with the name of the file or the server, and the way out when it is damaged, unwritable, or written by a newer program. */
export async function openStore(path: string, options: StoreOptions, log: Log, guard?: () => void): Promise<Store> {
	const postgres = options.store?.postgres;
	if (postgres) return openOnServer(postgres, options, log);
	let file: SqliteFile | undefined;
	try {
		const opened = openSqlite(path, options.durability, guard);
		file = opened;
		const parts = { ledger: sqliteLedger(opened), rows: serviceRows(opened), storage: sqliteStorage(opened) };
		return storeOf(parts, options, log, "commits fail: is the disk full?", () => opened.close());
	} catch (cause) {
		file?.close();
		throw storeError(cause, path);
	}
}

type StoreParts = Pick<Store, "ledger" | "rows"> & { storage: Storage };

function storeOf(
	{ ledger, rows, storage }: StoreParts,
	{ storeRetryMsMax, isShared = false, leaseMs = LEASE_MS }: StoreOptions,
	log: Log,
	trouble: string,
	close: () => void | Promise<void>,
): Store {
	const limits = { commitRetryMsMax: storeRetryMsMax, leaseMs };
	const clock: Clock = storeClock({ now: () => bus.now() }, systemClock);
	const tell = createTelling(clock);
	const bus: Bus = createBus({ storage, shared: isShared, clock: systemClock, log, limits, tell });
	return {
		bus,
		ledger,
		rows,
		clock,
		leaseMs,
		trouble,
		async close() {
			await bus.close();
			await close();
		},
	};
}

async function openOnServer(section: PostgresSection, options: StoreOptions, log: Log): Promise<Store> {
	const { databaseError, usableServer, migrateDatabase, openDatabase, postgresOptions, shownAddress } = await import(
		"./postgres.ts"
	);
	const server = postgresOptions(section, options.base ?? process.cwd(), log);
	let opened: DatabaseParts | undefined;
	try {
		await migrateDatabase(server, (postgres) => usableServer(postgres, server.url));
		const parts = await openDatabase(server, { log });
		opened = parts;
		const trouble = "commits fail: does the server of the database answer?";
		const store = storeOf(parts, options, log, trouble, () => parts.postgres.close());
		// Joining asks the server for its time, which the clock shows from the first moment on.
		await store.bus.list({ orphaned: true, limit: 1 });
		return store;
	} catch (cause) {
		await opened?.postgres.close();
		throw storeError(databaseError(cause, server.url), shownAddress(server.url));
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
