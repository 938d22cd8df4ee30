/** Runtime health: how the daemon is, as a state feed. */

import type { DaemonState } from "@nexus-stream/protocol";

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

export interface RuntimeHealthFeed {
	/** What is so now. */
	current(): RuntimeHealth;
	/** Called with every sample from now on, one a second and at once when the status changes; returns how to stop it. */
	subscribe(listener: (health: RuntimeHealth) => void): () => void;
	/** The status may have changed: whoever listens hears of it in the tick of the call. */
	changed(): void;
	close(): void;
}
