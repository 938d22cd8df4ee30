/** Makes committed transactions survive a power cut. The sync runs on a thread of the pool, so a slow disk does not stop the event loop. */

import { closeSync, fdatasync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";

export interface WalSync {
	/** Resolves once every transaction that was committed before the call is on the disk. One call at a time. */
	sync(): Promise<void>;
	close(): void;
}

/** `flush` syncs one open file or folder; tests put a slow or failing disk in its place. */
export function walSync(db: DatabaseSync, path: string, flush = promisify(fdatasync)): WalSync {
	const checkpoint = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");
	let wal: number | undefined;
	let hasFailed = false;
	let underWay: Promise<unknown> = Promise.resolve();

	/** The first transaction creates the log, and its name survives a power cut only once the folder is synced. */
	const syncFolder = async () => {
		const folder = openSync(dirname(path), "r");
		await flush(folder).finally(() => closeSync(folder));
	};
	const syncLog = async () => {
		if (wal === undefined) {
			await syncFolder();
			wal = openSync(`${path}-wal`, "r");
		}
		await flush(wal);
	};
	/**
	 * After a failed sync the kernel considers the unwritten pages clean, and the next sync would succeed without them. A checkpoint copies
	 * every page into the database file and syncs that instead.
	 */
	const moveAll = () => {
		const { busy, log, checkpointed } = checkpoint.get() as Record<string, number>;
		if (busy !== 0 || log !== checkpointed) throw new Error("the write-ahead log could not be moved into the database");
	};
	const sync = async () => {
		try {
			if (hasFailed) moveAll();
			else await syncLog();
			hasFailed = false;
		} catch (cause) {
			hasFailed = true;
			throw cause;
		}
	};
	const end = () => {
		if (wal !== undefined) closeSync(wal);
		wal = undefined;
	};
	return {
		sync() {
			const synced = sync();
			underWay = synced;
			return synced;
		},
		// A descriptor that is closed during its sync could be another file's by then.
		close: () => void underWay.then(end, end),
	};
}
