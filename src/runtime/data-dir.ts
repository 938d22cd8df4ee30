/** The data directory: one daemon at a time, readable by its owner only, with what a client needs to find the daemon. */

import { randomBytes } from "node:crypto";
import {
	accessSync,
	closeSync,
	constants,
	existsSync,
	mkdirSync,
	openSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { NexusError } from "../protocol/protocol.ts";

export interface DataPaths {
	dir: string;
	db: string;
	lock: string;
	token: string;
	daemon: string;
}

export const dataPaths = (dir: string): DataPaths => ({
	dir,
	db: join(dir, "nexus.db"),
	lock: join(dir, "lock.db"),
	token: join(dir, "token"),
	daemon: join(dir, "daemon.json"),
});

/** Who serves this directory, for clients on this machine. */
export interface DaemonRecord {
	pid: number;
	url: string;
	started_at: number;
}

/** How long a starting daemon waits for a lock that a check holds for an instant. */
const LOCK_WAIT_MS = 200;

const reason = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));

/** Makes the directory, for its owner only. Throws `config` when it cannot be used. */
export function prepareDataDir(dir: string): DataPaths {
	const paths = dataPaths(dir);
	try {
		// The mode of a directory that was there before is its owner's decision; every file in it is private all the same.
		makePrivateDir(dir);
		accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
		// SQLite gives its journal files the mode of the file they belong to.
		for (const file of [paths.lock, paths.db]) closeSync(openSync(file, "a", 0o600));
	} catch (cause) {
		throw new NexusError(
			"config",
			`the data directory ${dir} cannot be used (${reason(cause)}): make it writable for this user, or choose another with --data`,
			{ cause },
		);
	}
	return paths;
}

/** With those above it. Not by `recursive`: where nothing can be made, though the folder above is there (/proc, an automount), Node tries for ever. */
export function makePrivateDir(dir: string): void {
	if (existsSync(dir) && statSync(dir).isDirectory()) return;
	if (dirname(dir) !== dir) makePrivateDir(dirname(dir));
	mkdirSync(dir, { mode: 0o700 });
}

/** Held for the life of the process; the operating system lets go of it even after a kill -9. */
export interface DataLock {
	release(): void;
}

/** Throws `conflict` when another process has the directory. */
export function lockDataDir(paths: DataPaths): DataLock {
	const lock = tryLock(paths, LOCK_WAIT_MS);
	if (lock) return lock;
	const other = readDaemonRecord(paths);
	const who = other ? ` (pid ${other.pid}, ${other.url})` : "";
	throw new NexusError(
		"conflict",
		`another Nexus${who} uses ${paths.dir}: stop it or use --data with another directory`,
	);
}

/** True when a live process holds the directory. */
export function isDataDirLocked(paths: DataPaths): boolean {
	if (!existsSync(paths.lock)) return false;
	const lock = tryLock(paths, 0);
	lock?.release();
	return lock === undefined;
}

function tryLock(paths: DataPaths, waitMs: number): DataLock | undefined {
	let db: DatabaseSync | undefined;
	try {
		db = new DatabaseSync(paths.lock, { timeout: waitMs });
		db.exec("BEGIN EXCLUSIVE");
	} catch (cause) {
		db?.close();
		if (isLockedError(cause)) return undefined;
		throw new NexusError(
			"config",
			`cannot lock the data directory with ${paths.lock} (${reason(cause)}): delete that file if no Nexus is running, and check that the disk is writable`,
			{ cause },
		);
	}
	const held = db;
	return { release: () => held.close() };
}

/** SQLITE_BUSY. */
const isLockedError = (cause: unknown) => (cause as { errcode?: number } | undefined)?.errcode === 5;

/** The given token, or the directory's own: made on the first start, readable by its owner only. */
export function daemonToken(paths: DataPaths, given: string | undefined): string {
	// Written in both cases, so that the commands on this machine find it.
	const token = given ?? readToken(paths) ?? randomBytes(32).toString("base64url");
	writePrivate(paths.token, `${token}\n`);
	return token;
}

export function readToken(paths: DataPaths): string | undefined {
	if (!existsSync(paths.token)) return undefined;
	const token = readFileSync(paths.token, "utf8").trim();
	return token === "" ? undefined : token;
}

export function writeDaemonRecord(paths: DataPaths, record: DaemonRecord): void {
	writePrivate(paths.daemon, `${JSON.stringify(record)}\n`);
}

export function readDaemonRecord(paths: DataPaths): DaemonRecord | undefined {
	try {
		return JSON.parse(readFileSync(paths.daemon, "utf8")) as DaemonRecord;
	} catch {
		// Absent, or of another version: either way nobody can be found through it.
		return undefined;
	}
}

/** Whether it is there but for another user: then nobody can say who serves it. */
export function isForAnother(paths: DataPaths): boolean {
	try {
		accessSync(paths.dir, constants.X_OK);
		accessSync(paths.daemon, constants.R_OK);
		return false;
	} catch (cause) {
		return (cause as NodeJS.ErrnoException).code === "EACCES";
	}
}

export const removeDaemonRecord = (paths: DataPaths): void => rmSync(paths.daemon, { force: true });

/** Appears whole, and with its mode from the first instant. */
export function writePrivate(path: string, text: string): void {
	const half = `${path}.${process.pid}.tmp`;
	rmSync(half, { force: true });
	writeFileSync(half, text, { mode: 0o600, flag: "wx" });
	renameSync(half, path);
}
