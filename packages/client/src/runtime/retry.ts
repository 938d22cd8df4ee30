/** When a call is made again, as a value: which status is a cut, which a refusal, and how long to wait. */

import { Code, ConnectError } from "@connectrpc/connect";
import { LINK_LIMITS, type LinkLimits, retryDelayMs } from "../client.ts";
import { ReasonCode } from "../gen/nexus/runtime/v1/common_pb.ts";

export interface RetryLimits extends Pick<LinkLimits, "retryFirstMs" | "retryMaxMs" | "steadyMs"> {
	/** Without a sign of life for this long, a call (unary, mode A or C) fails with its last status. */
	giveUpMs: number;
	/** The same for a subscription (mode B or D), which by default waits until it is closed. */
	subscriptionGiveUpMs: number;
}

export const RETRY_LIMITS: RetryLimits = {
	retryFirstMs: LINK_LIMITS.retryFirstMs,
	retryMaxMs: LINK_LIMITS.retryMaxMs,
	steadyMs: LINK_LIMITS.steadyMs,
	giveUpMs: 120_000,
	subscriptionGiveUpMs: Number.POSITIVE_INFINITY,
};

/** Set by the daemon on every error of its own; what comes from the network between has none. */
const REASON_HEADER = "x-nexus-reason-code";

/** Why the daemon refused or cut, as it names it; unspecified when the network failed. */
export function reasonCodeOf({ metadata }: Pick<ConnectError, "metadata">): ReasonCode {
	const name = metadata.get(REASON_HEADER)?.replace(/^REASON_CODE_/, "") ?? "";
	return Object.hasOwn(ReasonCode, name) ? ReasonCode[name as keyof typeof ReasonCode] : ReasonCode.UNSPECIFIED;
}

/** What ended a call. A reader that was reset because it took nothing is RESOURCE_EXHAUSTED (Z8): over Node's HTTP/2, Connect calls it INTERNAL. */
export function endOf(cause: unknown): ConnectError {
	const error = ConnectError.from(cause);
	const isReset = error.code === Code.Internal && error.rawMessage.includes("NGHTTP2_ENHANCE_YOUR_CALM");
	if (!isReset) return error;
	return new ConnectError("the reader took nothing for too long", Code.ResourceExhausted, undefined, undefined, cause);
}

/**
 * `cut`: the transport ended, which says nothing of the outcome: call again. `doubt`: a fault that may pass or be there for good: call again
 * a few times. `refused`: asking again changes nothing.
 */
export type FailureKind = "cut" | "doubt" | "refused";

/** Reasons for which the same call may succeed later. */
const PASSING: ReadonlySet<ReasonCode> = new Set([
	ReasonCode.UNSPECIFIED,
	ReasonCode.UNAVAILABLE,
	ReasonCode.STOPPING,
	ReasonCode.STALLED,
	ReasonCode.BUSY,
]);

/** The table of statuses: a daemon's own cuts (K-STREAM-010), and how transports report a lost connection. */
export function verdictOf(error: Pick<ConnectError, "code" | "metadata">): FailureKind {
	const reason = reasonCodeOf(error);
	switch (error.code) {
		case Code.Canceled:
		case Code.ResourceExhausted:
		case Code.Unavailable:
		// Only a transport gives these two without a reason: a reset connection, a body that breaks off.
		case Code.Aborted:
		case Code.Unknown:
			return PASSING.has(reason) ? "cut" : "refused";
		case Code.DataLoss:
		case Code.Internal:
			return "doubt";
		// The caller's own deadline.
		case Code.DeadlineExceeded:
		case Code.InvalidArgument:
		case Code.NotFound:
		case Code.AlreadyExists:
		case Code.PermissionDenied:
		case Code.FailedPrecondition:
		case Code.OutOfRange:
		case Code.Unimplemented:
		case Code.Unauthenticated:
			return "refused";
		default:
			return error.code satisfies never;
	}
}

export interface RetryState {
	/** Tries since the last sign of life. */
	readonly attempt: number;
	/** Doubtful ones among them. */
	readonly doubts: number;
	/** When the first of them was lost. */
	readonly lostAt: number;
}

export const FRESH: RetryState = { attempt: 0, doubts: 0, lostAt: 0 };

const DOUBTS_MAX = 5;

/** What follows a failed try: another one after a wait, or none. `random` spreads the tries of many readers that lost the same daemon. */
export function stepRetry(
	state: RetryState,
	verdict: FailureKind,
	now: number,
	random: () => number,
	limits: RetryLimits,
): { state: RetryState; delayMs: number } | undefined {
	const doubts = state.doubts + (verdict === "doubt" ? 1 : 0);
	if (verdict === "refused" || doubts > DOUBTS_MAX) return undefined;
	const lostAt = state.attempt === 0 ? now : state.lostAt;
	if (state.attempt > 0 && now - lostAt >= limits.giveUpMs) return undefined;
	const delayMs = retryDelayMs(state.attempt, random, limits);
	return { state: { attempt: state.attempt + 1, doubts, lostAt }, delayMs };
}
