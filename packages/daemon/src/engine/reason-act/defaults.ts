/** What is left out of the `reasonAct` section. */

import { ATTEMPTS_MAX } from "./termination.ts";

export const REASON_ACT_DEFAULTS = {
	attemptsMax: ATTEMPTS_MAX,
	toolsParallelMax: 8,
	toolIndicatorGapMs: 100,
	toolDurationMs: 1000,
	commandMs: 30_000,
	recentTransitionMs: 30_000,
	toolSettleMs: 1000,
	retriesMax: 2,
	retryDelayMsMax: 10_000,
} as const;
