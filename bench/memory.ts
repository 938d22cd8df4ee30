/** Preloaded into a measured process: at SIGUSR2 it collects garbage and writes what is left into the file that BENCH_MEMORY names. */

import { renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";

/** Megabytes (10⁶). */
export interface Memory {
	heapUsedMb: number;
	heapTotalMb: number;
	arrayBuffersMb: number;
}

const file = process.env.BENCH_MEMORY;

async function tell(path: string): Promise<void> {
	const { heapTotal } = process.memoryUsage();
	// Memory outside of the heap is given back a moment after its owner is collected.
	for (let times = 0; times < 3; times++) {
		globalThis.gc?.();
		await sleep(20);
	}
	const { heapUsed, arrayBuffers } = process.memoryUsage();
	const memory: Memory = {
		heapUsedMb: heapUsed / 1e6,
		heapTotalMb: heapTotal / 1e6,
		arrayBuffersMb: arrayBuffers / 1e6,
	};
	writeFileSync(`${path}.part`, JSON.stringify(memory));
	renameSync(`${path}.part`, path);
}

if (file !== undefined && isMainThread) process.on("SIGUSR2", () => void tell(file));
