/** The worker behind `checkpoint.ts`: moves the write-ahead log into the database on its own connection, on request. */

import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

const db = new DatabaseSync(workerData as string, { timeout: 0 });
// A checkpoint under NORMAL syncs the log before and the database after it: a power cut cannot tear the file.
db.exec("PRAGMA synchronous = NORMAL");
const checkpoint = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");

/** True when all of the log is in the database now. */
function moveAll(): boolean {
	try {
		const { busy, log, checkpointed } = checkpoint.get() as Record<string, number>;
		return busy === 0 && log === checkpointed;
	} catch {
		// A full or failing disk: the writer's own commits tell of it, and the next call tries again.
		return false;
	}
}

parentPort!.on("message", () => parentPort!.postMessage(moveAll()));
