/** The status of a call as the one error class, and back. */

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
import { reasonCodeOf } from "./retry.ts";

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
