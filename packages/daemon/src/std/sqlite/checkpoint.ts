/** Checkpoints on a worker: the syncs they need would stop the event loop for milliseconds, sometimes for a second. */

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { withDefaults } from "@nexus-stream/protocol/defaults";

export interface CheckpointLimits {
	/** How often the size of the write-ahead log is looked at. */
	lookMs: number;
	/** From this size on the worker moves it into the database. */
	walBytesSoft: number;
	/** From this size on the writer waits once until the log can start over: it must not grow without a limit under constant load. */
	walBytesMax: number;
	/** The worker ends when it was not needed for so long. */
	workerIdleMs: number;
}

const DEFAULT_LIMITS: CheckpointLimits = {
	lookMs: 250,
	walBytesSoft: 4 * 1024 * 1024,
	walBytesMax: 512 * 1024 * 1024,
	workerIdleMs: 30_000,
};

/** Takes checkpoints over from the writer's connection; returns how to stop. */
export function checkpointBeside(db: DatabaseSync, path: string, limits: Partial<CheckpointLimits> = {}): () => void {
	const { lookMs, walBytesSoft, walBytesMax, workerIdleMs } = withDefaults(DEFAULT_LIMITS, limits);
	// A log that starts over gives its size back, or the size would ask for checkpoints for good.
	db.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${walBytesSoft - 1}`);
	const restart = db.prepare("PRAGMA wal_checkpoint(RESTART)");
	let worker: Worker | undefined;
	let busy = false;
	let needed = 0;
	/** WAL mtime at the last checkpoint request and at the last complete checkpoint. */
	let asked = 0;
	let moved = 0;

	const end = () => {
		void worker?.terminate();
		worker = undefined;
		busy = false;
	};
	const start = () => {
		const script = import.meta.url.endsWith(".ts") ? "./checkpoint-worker.ts" : "./checkpoint-worker.js";
		const started = new Worker(new URL(script, import.meta.url), { workerData: path });
		started.on("message", (whole: boolean) => {
			busy = false;
			if (whole) moved = asked;
		});
		// Listening takes a reference; a process that has nothing else to do must be able to end.
		started.unref();
		// Without its worker the log only grows until the writer restarts it: slower, and nothing is lost.
		started.on("error", end);
		return started;
	};
	const beginAnew = () => {
		try {
			if (!db.isTransaction) restart.all();
		} catch {
			// A full or failing disk: the commits tell of it. Here the log only grows on, and a timer that threw would end the process.
		}
	};
	const look = () => {
		const { size, mtimeMs } = statSync(`${path}-wal`, { throwIfNoEntry: false }) ?? { size: 0, mtimeMs: 0 };
		const now = performance.now();
		if (size < walBytesSoft || mtimeMs === moved) {
			if (worker && !busy && now - needed > workerIdleMs) end();
			return;
		}
		needed = now;
		if (size >= walBytesMax) beginAnew();
		if (busy) return;
		worker ??= start();
		busy = true;
		asked = mtimeMs;
		worker.postMessage("go");
	};
	const timer = setInterval(() => {
		try {
			look();
		} catch {
			// As above: a disk that cannot even be looked at, or no room for a worker. The next look tries again.
		}
	}, lookMs);
	timer.unref();
	return () => {
		clearInterval(timer);
		end();
	};
}
