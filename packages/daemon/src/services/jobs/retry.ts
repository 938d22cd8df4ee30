/** When an attempt is followed by another: only where the submitter allowed it, and only after failures that may pass. */

import type { ErrorCode, NexusError, Reason } from "@nexus-stream/protocol";
import type { Job } from "./port.ts";

const PASSING: readonly ErrorCode[] = ["engine_failed", "timeout", "unavailable", "busy"];

/** The daemon's own rules refuse it: they would refuse it again. */
const LASTING: readonly Reason[] = ["AI_ENDPOINT_FORBIDDEN", "QUOTA_EXCEEDED"];

export const mayRetry = ({ attempt, attemptsMax }: Pick<Job, "attempt" | "attemptsMax">, error: NexusError): boolean =>
	attempt < attemptsMax && PASSING.includes(error.code) && !LASTING.includes(error.reason ?? "UNSPECIFIED");

/** The pause before the attempt after this one: it doubles. */
export const retryPauseMs = (
	{ attempt, backoffMs }: Pick<Job, "attempt" | "backoffMs">,
	backoffMsMax: number,
): number => Math.min(backoffMs * 2 ** (attempt - 1), backoffMsMax);
