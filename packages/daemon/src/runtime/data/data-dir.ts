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
import { NexusError } from "@nexus-stream/protocol";
import { isStoreAway, isStoreFull } from "../../std/store-failure.ts";

export interface DataPaths {
	dir: string;
	db: string;
	lock: string;
	/** There when the directory has held data. */
	marker: string;
	token: string;
	/** Encrypts the keys of connectors. */
	secret: string;
	daemon: string;
}

export const dataPaths = (dir: string): DataPaths => ({
	dir,
	db: join(dir, "nexus.db"),
	lock: join(dir, "lock.db"),
	marker: join(dir, "store.json"),
	token: join(dir, "token"),
	secret: join(dir, "secret.key"),
	daemon: join(dir, "daemon.json"),
});

/** The daemon that serves this directory, for clients on this machine. */
export interface DaemonRecord {
	pid: number;
	url: string;
	/** The gRPC port, unless it is off. */
	grpc?: string;
	started_at: number;
}

export const reasonOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));

/** Makes the directory, for its owner only. Throws `config` when it cannot be used. `isStore`: the database is in it. */
export function prepareDataDir(dir: string, isStore = true): DataPaths {
	const paths = dataPaths(dir);
	try {
		// The mode of a directory that was there before is its owner's decision; every file in it is private all the same.
		makePrivateDir(dir);
		accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
		if (isStore) refuseEmptied(paths);
		// SQLite gives its journal files the mode of the file they belong to.
		for (const file of isStore ? [paths.lock, paths.db] : [paths.lock]) closeSync(openSync(file, "a", 0o600));
	} catch (cause) {
		if (cause instanceof NexusError) throw cause;
		if (isFull(cause)) throw fullDisk(dir, cause);
		throw new NexusError(
			"config",
			`the data directory ${dir} cannot be used (${reasonOf(cause)}): make it writable for this user, or choose another with --data`,
			{ cause },
		);
	}
	return paths;
}

/** Makes the folder and its parents. Not by `recursive`: where nothing can be made although the parent exists (/proc, an automount), Node never returns. */
export function makePrivateDir(dir: string): void {
	if (existsSync(dir) && statSync(dir).isDirectory()) return;
	if (dirname(dir) !== dir) makePrivateDir(dirname(dir));
	mkdirSync(dir, { mode: 0o700 });
}

/** Says that the directory has held data, and which lock file was used last. */
export interface Marker {
	lock?: string | undefined;
}

export function readMarker(paths: DataPaths): Marker | undefined {
	if (!existsSync(paths.marker)) return undefined;
	try {
		return JSON.parse(readFileSync(paths.marker, "utf8")) as Marker;
	} catch {
		// That it is there says enough.
		return {};
	}
}

export function writeMarker(paths: DataPaths, marker: Marker): void {
	if (readMarker(paths)?.lock !== marker.lock) writePrivate(paths.marker, `${JSON.stringify(marker)}\n`);
}

/** A database that lost everything must not look like one that is new. */
function refuseEmptied(paths: DataPaths): void {
	if (!existsSync(paths.marker)) return;
	const found = statSync(paths.db, { throwIfNoEntry: false });
	if (found && found.size > 0) return;
	throw new NexusError(
		"data_loss",
		`${paths.db} is ${found ? "empty" : "missing"}, but this directory has held data: restore it from a backup, or delete ${paths.marker} to start empty`,
	);
}

/** The given token, or the directory's own: made on the first start, readable by its owner only. */
export function daemonToken(paths: DataPaths, given: string | undefined): string {
	// Written in both cases, so that the commands on this machine find it.
	const token = given ?? readToken(paths) ?? randomBytes(32).toString("base64url");
	if (token !== readToken(paths)) writePrivate(paths.token, `${token}\n`);
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
		// The record is absent or of another version: either way it leads to no daemon.
		return undefined;
	}
}

/** The directory exists but belongs to another user, so its daemon cannot be found. */
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
	try {
		writeFileSync(half, text, { mode: 0o600, flag: "wx" });
		renameSync(half, path);
	} catch (cause) {
		rmSync(half, { force: true });
		throw isFull(cause) ? fullDisk(dirname(path), cause) : cause;
	}
}

const isFull = (cause: unknown): boolean =>
	["ENOSPC", "EDQUOT", "EIO"].includes((cause as NodeJS.ErrnoException | undefined)?.code ?? "");

const fullDisk = (dir: string, cause: unknown): NexusError =>
	new NexusError("unavailable", `the disk of ${dir} is full or failing: free some space, then start again`, { cause });

/** Whether the same step may succeed later: the disk is full, one write failed, or the server of the database does not answer. */
export const mayPass = (cause: unknown): cause is NexusError =>
	cause instanceof NexusError && (isFull(cause.cause) || isStoreFull(cause.cause) || isStoreAway(cause.cause));
