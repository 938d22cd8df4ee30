/** The JSON of the HTTP API about how the daemon is. */

import type { DaemonState } from "./api.ts";

/** The data of an event of `GET /v1/health/stream`. */
export interface RuntimeHealthJson {
	status: DaemonState;
	/** Why it is not READY. */
	reason?: string;
	/** Messages and jobs that wait. */
	queue_depth: number;
	active_workflows: number;
	active_inference_jobs: number;
	active_runs: number;
	/** Thousandths of a processor, since the sample before. */
	cpu_milli: number;
	memory_bytes: number;
	/** Milliseconds since the epoch. */
	sampled_at: number;
}
