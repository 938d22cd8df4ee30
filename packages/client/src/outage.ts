/** Retries after lost connections and failed calls, as a pure step: the same for every transport. */

import type { ErrorCode } from "@nexus-stream/protocol";
import { backoffMs } from "@nexus-stream/protocol/retry";

export interface RetryLimits {
	/** The first delay; doubles with each attempt, up to `retryMaxMs`. */
	retryFirstMs: number;
	retryMaxMs: number;
	/** A connection that was open this long was good, even without records. */
	steadyMs: number;
	/** Without a good connection for this long, the server counts as lost. */
	giveUpMs: number;
}

/**
 * `cut`: the transport failed, which says nothing about the outcome: try again. `doubt`: a fault of the server that may pass or be permanent:
 * try again a few times. `refused`: another attempt would change nothing.
 */
export type FailureKind = "cut" | "doubt" | "refused";

export interface Outage {
	/** Attempts since the last sign of life. */
	readonly attempt: number;
	/** Doubtful failures among them. */
	readonly doubts: number;
	/** When the first of them failed. */
	readonly lostAt: number;
}

export const NO_OUTAGE: Outage = { attempt: 0, doubts: 0, lostAt: 0 };

const DOUBTS_MAX = 5;

/** The step after a failure: another attempt after a delay, or the reason to give up. */
export type RetryStep = { outage: Outage; delayMs: number } | "refused" | "lost";

/** `random` spreads the attempts of readers that lost the same server. */
export function stepOutage(
	outage: Outage,
	kind: FailureKind,
	now: number,
	random: () => number,
	limits: Omit<RetryLimits, "steadyMs">,
): RetryStep {
	const doubts = outage.doubts + (kind === "doubt" ? 1 : 0);
	if (kind === "refused" || doubts > DOUBTS_MAX) return "refused";
	const lostAt = outage.attempt === 0 ? now : outage.lostAt;
	if (outage.attempt > 0 && now - lostAt >= limits.giveUpMs) return "lost";
	const ceilingMs = backoffMs({ firstMs: limits.retryFirstMs, maxMs: limits.retryMaxMs }, outage.attempt);
	return { outage: { attempt: outage.attempt + 1, doubts, lostAt }, delayMs: ceilingMs * (0.5 + random() / 2) };
}

/** The server is busy or starting, or the network failed. */
const PASSING: ReadonlySet<ErrorCode> = new Set(["unavailable", "busy", "timeout"]);

export const failureKindOf = (code: ErrorCode): FailureKind =>
	code === "internal" ? "doubt" : PASSING.has(code) ? "cut" : "refused";
