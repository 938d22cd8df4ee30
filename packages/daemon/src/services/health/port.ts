/** Runtime health: how the daemon is, as a state feed. */

import type { DaemonState } from "@nexus-stream/protocol/api";

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
	/** The newest sample. */
	current(): RuntimeHealth;
	/** Called with every sample from now on, one a second and at once when the status changes; returns how to stop it. */
	subscribe(listener: (health: RuntimeHealth) => void): () => void;
	/** Reports that the status may have changed; listeners are called in the same tick. */
	changed(): void;
	close(): void;
}
