/** Samples of how the daemon is: taken while somebody watches, and never otherwise. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { listeners } from "../kit/listeners.ts";
import type { RuntimeHealth, RuntimeHealthFeed } from "./port.ts";

export interface RuntimeHealthDeps {
	status(): Pick<RuntimeHealth, "status" | "reason">;
	work(): Pick<RuntimeHealth, "queueDepth" | "activeWorkflows" | "activeInferenceJobs" | "activeRuns">;
	/** Of this process: processor time so far, and what it holds. */
	usage(): { cpuMicros: number; memoryBytes: number };
	clock: Clock;
	log: Log;
}

const SAMPLE_MS = 1000;

export function createRuntimeHealth({ status, work, usage, clock, log }: RuntimeHealthDeps): RuntimeHealthFeed {
	const watching = listeners<RuntimeHealth>(log);
	let before = { at: clock.now(), cpuMicros: usage().cpuMicros };
	let newest: RuntimeHealth | undefined;
	let cancel = () => {};
	const sample = (): RuntimeHealth => {
		const now = clock.now();
		const { cpuMicros, memoryBytes } = usage();
		const passedMs = now - before.at;
		// Microseconds in a millisecond are thousandths of a processor.
		const cpuMilli = passedMs > 0 ? Math.round((cpuMicros - before.cpuMicros) / passedMs) : (newest?.cpuMilli ?? 0);
		if (passedMs > 0) before = { at: now, cpuMicros };
		newest = { ...status(), ...work(), cpuMilli, memoryBytes, sampledAt: now };
		return newest;
	};
	const keepSampling = () => {
		cancel = clock.after(SAMPLE_MS, () => {
			keepSampling();
			watching.tell(sample());
		});
	};
	return {
		current() {
			const isFresh = newest !== undefined && clock.now() - newest.sampledAt < SAMPLE_MS;
			// A sample of a moment would say nothing about the processor; the rest is told as it is.
			return isFresh && newest ? { ...newest, ...status(), ...work() } : sample();
		},
		subscribe(listener) {
			const stop = watching.add(listener);
			if (watching.size === 1) keepSampling();
			return () => {
				stop();
				if (watching.size === 0) cancel();
			};
		},
		changed() {
			if (watching.size > 0) watching.tell(sample());
		},
		close: () => cancel(),
	};
}
