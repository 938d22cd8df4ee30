/** Failures of calls: which status is a cut, which a refusal, how long to wait, and the status as the one error class. */

import { Code, ConnectError } from "@connectrpc/connect";
import {
	ERROR_TABLE,
	type ErrorCode,
	grpcStatusOf,
	NexusError,
	type Reason,
	reasonOf,
	toNexusError,
} from "@nexus-stream/protocol";
import { ReasonCode } from "../gen/nexus/runtime/v1/common_pb.ts";
import { LINK_LIMITS } from "../link.ts";
import type { FailureKind, RetryLimits } from "../outage.ts";

/**
 * A call (unary, mode A or C) fails after `giveUpMs` without a sign of life, a subscription (mode B or D) after
 * `subscriptionGiveUpMs`: by default it waits until it is closed.
 */
export interface RuntimeRetryLimits extends RetryLimits {
	subscriptionGiveUpMs: number;
}

export const RETRY_LIMITS: RuntimeRetryLimits = {
	...LINK_LIMITS,
	giveUpMs: 120_000,
	subscriptionGiveUpMs: Number.POSITIVE_INFINITY,
};

/** The daemon sets it on all of its errors; errors of the network in between have none. */
const REASON_HEADER = "x-nexus-reason-code";

/** Why the daemon refused or cut, as it names it; unspecified when the network failed. */
export function reasonCodeOf({ metadata }: Pick<ConnectError, "metadata">): ReasonCode {
	const name = metadata.get(REASON_HEADER)?.replace(/^REASON_CODE_/, "") ?? "";
	return Object.hasOwn(ReasonCode, name) ? ReasonCode[name as keyof typeof ReasonCode] : ReasonCode.UNSPECIFIED;
}

/** The error that ended a call. A reset of a stalled reader is RESOURCE_EXHAUSTED (Z8), although Connect reports INTERNAL over Node's HTTP/2. */
export function endOf(cause: unknown): ConnectError {
	const error = ConnectError.from(cause);
	const isReset = error.code === Code.Internal && error.rawMessage.includes("NGHTTP2_ENHANCE_YOUR_CALM");
	if (!isReset) return error;
	return new ConnectError("the reader took nothing for too long", Code.ResourceExhausted, undefined, undefined, cause);
}

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

/** Keeps the code that the daemon meant: its reason says more than the status, which several codes share. */
export function nexusErrorOf(cause: unknown): NexusError {
	if (!(cause instanceof ConnectError)) return toNexusError(cause);
	// Thrown before the request reached the daemon.
	if (cause.cause instanceof NexusError) return cause.cause;
	const reason = nameOf(reasonCodeOf(cause));
	const code = CODES.find((each) => reasonOf(each) === reason) ?? codeOf(cause.code);
	return new NexusError(code, cause.rawMessage, { cause, reason });
}

/** The error code of a failure that an answer tells by its reason. */
export const errorCodeOf = (reason: ReasonCode): ErrorCode =>
	CODES.find((each) => reasonOf(each) === nameOf(reason)) ?? CODE_OF_REASON[reason] ?? "engine_failed";

/** Reasons that say more than a code does. */
const CODE_OF_REASON: Readonly<Partial<Record<ReasonCode, ErrorCode>>> = {
	[ReasonCode.STOPPING]: "unavailable",
	[ReasonCode.IDEMPOTENCY_CONFLICT]: "invalid",
	[ReasonCode.USER_TOKEN_INVALID]: "unauthenticated",
	[ReasonCode.AI_CONNECTOR_NOT_FOUND]: "not_found",
	[ReasonCode.AI_MODEL_NOT_FOUND]: "not_found",
	[ReasonCode.AI_CONNECTOR_DISABLED]: "precondition",
	[ReasonCode.AI_CONNECTOR_CREDENTIAL_MISSING]: "precondition",
	[ReasonCode.AI_ENDPOINT_FORBIDDEN]: "forbidden",
	[ReasonCode.AI_ENDPOINT_UNRESOLVED]: "unavailable",
	[ReasonCode.AI_SCENARIO_UNSUPPORTED]: "invalid",
	[ReasonCode.AI_PROVIDER_TIMEOUT]: "timeout",
	[ReasonCode.WORKFLOW_INVALID]: "invalid",
	[ReasonCode.QUOTA_EXCEEDED]: "busy",
};

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[];

const nameOf = (reason: ReasonCode): Reason =>
	(Object.entries(ReasonCode).find(([, value]) => value === reason)?.[0] ?? "UNSPECIFIED") as Reason;

/** A status without a reason comes from the network between. */
function codeOf(status: Code): ErrorCode {
	if (status === Code.Unknown || status === Code.Aborted) return "unavailable";
	if (status === Code.ResourceExhausted) return "busy";
	return CODES.find((each) => grpcStatusOf(each) === Number(status)) ?? "internal";
}

export const connectErrorOf = (error: NexusError): ConnectError =>
	new ConnectError(error.message, grpcStatusOf(error.code) as Code, undefined, undefined, error);
