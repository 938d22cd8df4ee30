/**
 * One daemon per data directory. The lock is a file that can be deleted, so it is not trusted alone: a daemon that finds another lock file than the
 * last daemon used checks whether the database is open, and the daemon that holds the directory keeps checking that it still does.
 */

import { existsSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { sqliteFailure } from "../../std/sqlite/sqlite.ts";
import { type DataPaths, readDaemonRecord, readMarker, reasonOf, writeMarker } from "./data-dir.ts";

/** How long a starting daemon waits for a lock that a check holds for an instant. */
const LOCK_WAIT_MS = 200;
/** How often the holder looks whether the lock file is still its own. */
const LOOK_MS = 1000;

/** Held for the life of the process; the operating system lets go of it even after a kill -9. */
export interface DataLock {
	/** Why nothing may be written now: the directory or its database is gone, or another process has taken it. Clients read it: it names no path. */
	problem(): string | undefined;
	/** Once the database is there: from now on its absence is a problem, and the next start refuses an empty one. */
	settle(log: Log, isStore?: boolean): void;
	release(): void;
}

/** Throws `conflict` when another process has the directory. */
export function lockDataDir(paths: DataPaths): DataLock {
	let held = tryLock(paths, LOCK_WAIT_MS);
	if (!held) throw taken(paths);
	if (identity(paths.lock) !== readMarker(paths)?.lock && isOpenElsewhere(paths)) {
		held.close();
		throw taken(paths, ", or a program such as a backup or sqlite3 has its database open");
	}
	let own = identity(paths.lock);
	let database: string | undefined;
	let lost = false;
	let timer: NodeJS.Timeout | undefined;
	/** Locks a file again that was deleted or replaced; when another process holds it, this one must not write. */
	const look = (log: Log) => {
		if (identity(paths.lock) === own) {
			lost = false;
			return;
		}
		const next = existsSync(paths.dir) ? tryLock(paths, 0) : undefined;
		lost = next === undefined;
		if (!next) return;
		held?.close();
		held = next;
		own = identity(paths.lock);
		if (database !== undefined) writeMarker(paths, { lock: own });
		log.warn({ lock: paths.lock }, "the lock file was replaced while it was held; it is held again");
	};
	const problem = () => {
		if (database !== undefined && identity(paths.db) !== database)
			return "the database was removed or replaced while Nexus was running; nothing can be saved. Stop Nexus, restore the data directory, then start again";
		return lost ? "another process has taken the data directory; nothing is saved here any more" : undefined;
	};
	let logged: string | undefined;
	/** Where it is, for the operator. */
	const tell = (log: Log) => {
		const now = problem();
		if (now !== undefined && now !== logged) log.error({ data: paths.dir }, now);
		logged = now;
	};
	return {
		problem,
		settle(log, isStore = true) {
			if (isStore) {
				database = identity(paths.db);
				writeMarker(paths, { lock: own });
			}
			timer = setInterval(() => {
				try {
					look(log);
					tell(log);
				} catch (cause) {
					log.error({ err: cause }, "the lock of the data directory cannot be looked at");
				}
			}, LOOK_MS);
			timer.unref();
		},
		release() {
			clearInterval(timer);
			held?.close();
		},
	};
}

function taken(paths: DataPaths, orElse = ""): NexusError {
	const other = readDaemonRecord(paths);
	const who = other ? ` (pid ${other.pid}, ${other.url})` : "";
	return new NexusError(
		"conflict",
		`another Nexus${who} uses ${paths.dir}${orElse}: stop it or use --data with another directory`,
	);
}

/** True when a live process holds the directory. */
export function isDataDirLocked(paths: DataPaths): boolean {
	if (!existsSync(paths.lock)) return false;
	const lock = tryLock(paths, 0);
	lock?.close();
	return lock === undefined;
}

/** Which file stands at a path; undefined when there is none, or none that can be seen. */
function identity(path: string): string | undefined {
	try {
		const found = statSync(path, { throwIfNoEntry: false });
		return found && `${found.dev}:${found.ino}`;
	} catch {
		return undefined;
	}
}

function tryLock(paths: DataPaths, waitMs: number): DatabaseSync | undefined {
	let db: DatabaseSync | undefined;
	try {
		db = new DatabaseSync(paths.lock, { timeout: waitMs });
		db.exec("BEGIN EXCLUSIVE");
		return db;
	} catch (cause) {
		db?.close();
		const kind = sqliteFailure(cause)?.kind;
		if (kind === "locked") return undefined;
		const todo =
			kind === "full"
				? "the disk is full or failing. Free some space, then start again"
				: "check the owner and the mode of that file and of its directory";
		throw new NexusError(
			kind === "full" ? "unavailable" : "config",
			`cannot lock the data directory with ${paths.lock} (${reasonOf(cause)}): ${todo}`,
			{ cause },
		);
	}
}

/** Every connection to a database in WAL mode holds it; alone with it, one can have it for itself. */
function isOpenElsewhere(paths: DataPaths): boolean {
	if (!existsSync(paths.db)) return false;
	const db = new DatabaseSync(paths.db, { timeout: LOCK_WAIT_MS });
	try {
		// Nothing is written, so nothing has to be synced: an empty file would cost two syncs.
		db.exec("PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK");
		return false;
	} catch (cause) {
		// Opening the database reports any other problem.
		return sqliteFailure(cause)?.kind === "locked";
	} finally {
		db.close();
	}
}
