/** How the daemon is, as a feed of one state, and as JSON. */

import type { RuntimeHealthJson } from "@nexus-stream/protocol";
import type { RuntimeHealth, RuntimeHealthFeed } from "../../services/health/port.ts";
import { defined } from "../../std/defined.ts";

/** A reader that is behind misses samples of the same status, and no other status. */
export const healthFeed = (health: RuntimeHealthFeed) => ({
	current: () => [health.current()],
	subscribe: (listener: (state: RuntimeHealth) => void) => health.subscribe(listener),
	key: ({ status }: RuntimeHealth) => status,
});

export const healthView = (health: RuntimeHealth): RuntimeHealthJson =>
	defined({
		status: health.status,
		reason: health.reason,
		queue_depth: health.queueDepth,
		active_workflows: health.activeWorkflows,
		active_inference_jobs: health.activeInferenceJobs,
		active_runs: health.activeRuns,
		cpu_milli: health.cpuMilli,
		memory_bytes: health.memoryBytes,
		sampled_at: health.sampledAt,
	});
