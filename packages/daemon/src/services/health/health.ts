/** Runtime health: how the daemon is, as a state feed. Samples are taken only while a reader watches. */

import type { DaemonState } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { listeners } from "../kit/listeners.ts";

export interface RuntimeHealth {
	status: DaemonState;
	/** Why it is not READY. */
	reason?: string;
	/** Messages and jobs that wait. */
	queueDepth: number;
	activeWorkflows: number;
	activeInferenceJobs: number;
	activeRuns: number;
	/** Thousandths of a processor, since the sample before. */
	cpuMilli: number;
	memoryBytes: number;
	sampledAt: number;
}

export interface RuntimeHealthDeps {
	status(): Pick<RuntimeHealth, "status" | "reason">;
	work(): Pick<RuntimeHealth, "queueDepth" | "activeWorkflows" | "activeInferenceJobs" | "activeRuns">;
	/** Processor time and memory of this process. */
	usage(): { cpuMicros: number; memoryBytes: number };
	clock: Clock;
	log: Log;
}

const SAMPLE_MS = 1000;

export type RuntimeHealthFeed = ReturnType<typeof createRuntimeHealth>;

export function createRuntimeHealth({ status, work, usage, clock, log }: RuntimeHealthDeps) {
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
		/** The newest sample. */
		current(): RuntimeHealth {
			if (!newest || clock.now() - newest.sampledAt >= SAMPLE_MS) return sample();
			// Processor load needs two samples; the other values are current.
			return { ...newest, ...status(), ...work() };
		},
		/** Called with every sample from now on, one a second and at once when the status changes; returns how to stop it. */
		subscribe(listener: (health: RuntimeHealth) => void): () => void {
			const stop = watching.add(listener);
			if (watching.size === 1) keepSampling();
			return () => {
				stop();
				if (watching.size === 0) cancel();
			};
		},
		/** Reports that the status may have changed; listeners are called in the same tick. */
		changed(): void {
			if (watching.size > 0) watching.tell(sample());
		},
		close: () => cancel(),
	};
}
