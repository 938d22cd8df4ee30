/** One SQLite file with one writer connection: opening, transactions and versioned migrations. Knows no Nexus word. */

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { Tables } from "../write.ts";
import { checkpointBeside } from "./checkpoint.ts";
import { walSync } from "./wal-sync.ts";

/** `process`: a commit survives kill -9. `power`: it also survives a power cut (a sync per commit). */
export type Durability = "process" | "power";

export interface SqliteFile {
	readonly db: DatabaseSync;
	/** Applies writes by table. */
	readonly tables: Tables;
	/** Runs `work` in a transaction, or in the one already open. */
	transaction<T>(work: () => T): T;
	/** Present with durability `power`: resolves once every transaction so far survives a power cut. */
	readonly sync: (() => Promise<void>) | undefined;
	close(): void;
}

/** `guard` throws when nothing may be written; it is asked before every transaction. */
export function openSqlite(path: string, durability: Durability, guard: () => void = () => {}): SqliteFile {
	const db = new DatabaseSync(path, { timeout: 5000 });
	try {
		return opened(db, path, durability, guard);
	} catch (cause) {
		db.close();
		throw cause;
	}
}

function opened(db: DatabaseSync, path: string, durability: Durability, guard: () => void): SqliteFile {
	const isFile = path !== ":memory:";
	// A new file needs no rollback journal, which would cost four syncs: there is nothing in it to roll back to.
	if (isFile && statSync(path).size === 0) db.exec("PRAGMA journal_mode = MEMORY");
	// Savepoints keep their pages in memory: in a temporary file, SQLite would write every page that a commit changes once more.
	// NORMAL syncs for checkpoints only: with FULL every commit would stop the event loop until the disk has answered.
	db.exec(
		"PRAGMA temp_store = MEMORY; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
	);
	const endCheckpoints = isFile ? checkpointBeside(db, path) : () => {};
	const power = isFile && durability === "power" ? walSync(db, path) : undefined;
	const begin = db.prepare("BEGIN IMMEDIATE");
	const commit = db.prepare("COMMIT");
	const rollback = db.prepare("ROLLBACK");
	return {
		db,
		tables: new Tables(),
		transaction<T>(work: () => T): T {
			if (db.isTransaction) return work();
			guard();
			begin.run();
			try {
				const result = work();
				commit.run();
				return result;
			} catch (cause) {
				// SQLite rolls back by itself on some errors (a full disk); a second rollback would hide the cause.
				if (db.isTransaction) rollback.run();
				throw cause;
			}
		},
		sync: power?.sync,
		close() {
			endCheckpoints();
			power?.close();
			db.close();
		},
	};
}

/** Runs reads on one state of the file, whatever other connections commit meanwhile. */
export function readTogether<T>({ db }: SqliteFile, reads: () => T): T {
	if (db.isTransaction) return reads();
	db.exec("BEGIN");
	try {
		return reads();
	} finally {
		db.exec("COMMIT");
	}
}

/** The file was written by a newer program: reading it with older rules could damage it. */
export class SchemaTooNew extends Error {
	constructor(path: string, area: string, found: number, known: number) {
		super(
			`${path}: the "${area}" tables have schema version ${found}, this program knows up to ${known}. ` +
				"Start the newer version that wrote the file, or choose another file.",
		);
		this.name = "SchemaTooNew";
	}
}

/** Brings one area of the file up to date: step n lifts it to version n + 1. All steps commit together or not at all. */
export function migrate(file: SqliteFile, area: string, steps: readonly string[]): void {
	file.transaction(() => {
		file.db.exec("CREATE TABLE IF NOT EXISTS schema_version (area TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT");
		const row = file.db.prepare("SELECT version FROM schema_version WHERE area = ?").get(area);
		const found = row === undefined ? 0 : Number(row.version);
		if (found > steps.length) throw new SchemaTooNew(file.db.location() ?? ":memory:", area, found, steps.length);
		if (found === steps.length) return;
		for (const step of steps.slice(found)) file.db.exec(step);
		file.db
			.prepare("INSERT INTO schema_version VALUES (?1, ?2) ON CONFLICT (area) DO UPDATE SET version = ?2")
			.run(area, steps.length);
	});
}

export const hasTable = (db: DatabaseSync, name: string): boolean =>
	db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

/** The version of each area of a file; none when nothing was migrated yet. */
export function schemaVersions(db: DatabaseSync): Map<string, number> {
	if (!hasTable(db, "schema_version")) return new Map();
	const rows = db.prepare("SELECT area, version FROM schema_version").all();
	return new Map(rows.map(({ area, version }) => [String(area), Number(version)]));
}

/** A failure of SQLite by its kind, for callers that tell a person what to do. */
export interface SqliteFailure {
	kind: "corrupt" | "unwritable" | "full" | "locked" | "duplicate" | "other";
	message: string;
}

const FAILURE_KIND: Record<number, SqliteFailure["kind"]> = {
	5: "locked", // SQLITE_BUSY
	6: "locked", // SQLITE_LOCKED
	8: "unwritable", // SQLITE_READONLY
	10: "full", // SQLITE_IOERR
	11: "corrupt", // SQLITE_CORRUPT
	13: "full", // SQLITE_FULL
	14: "unwritable", // SQLITE_CANTOPEN
	26: "corrupt", // SQLITE_NOTADB
	1555: "duplicate", // SQLITE_CONSTRAINT_PRIMARYKEY
	2067: "duplicate", // SQLITE_CONSTRAINT_UNIQUE
};

/** Undefined when the error does not come from SQLite. */
export function sqliteFailure(cause: unknown): SqliteFailure | undefined {
	if (!(cause instanceof Error) || !("errcode" in cause) || typeof cause.errcode !== "number") return undefined;
	// The lower byte is the primary code; the rest refines it.
	const kind = FAILURE_KIND[cause.errcode] ?? FAILURE_KIND[cause.errcode & 0xff] ?? "other";
	return { kind, message: cause.message };
}
