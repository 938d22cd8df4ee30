/** The one place where an error becomes a status: by the error table, with its reason as `google.rpc.ErrorInfo` and in a trailer. */

import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@nexus-stream/client/gen/google/rpc/error_details_pb";
import { type ErrorCode, grpcStatusOf, NexusError, type Reason, reasonOf } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";

export const REASON_DOMAIN = "nexus.runtime.v1";
export const REASON_TRAILER = "x-nexus-reason-code";

/**
 * The error as a client sees it. An error other than a NexusError may name paths or keys of this machine and is logged instead, unless
 * the call was cut: then the signal's reason counts, whatever it made the method do.
 */
export function toConnectError(cause: unknown, log: Log, signal?: AbortSignal): ConnectError {
	if (signal?.aborted) return cutBy(signal);
	if (cause instanceof ConnectError) return explained(cause);
	if (cause instanceof NexusError) return statusOf(cause);
	log.error({ err: cause }, "a remote procedure failed");
	return refusal("internal", "the daemon failed at this call; its log says why");
}

const statusOf = (error: NexusError): ConnectError => refusal(error.code, error.message, error.reason, error);

/** gRPC's numbers are Connect's. */
export const refusal = (code: ErrorCode, message: string, reason: Reason = reasonOf(code), cause?: unknown) =>
	withReason(new ConnectError(message, grpcStatusOf(code) as Code, undefined, undefined, cause), reason);

/** A client that hangs up leaves a reason that is not a status. */
const cutBy = ({ reason }: AbortSignal): ConnectError =>
	reason instanceof ConnectError ? explained(reason) : refusal("aborted", "the call was cancelled");

/** The daemon stops: a cut, never an outcome (Z5). */
export const stopping = (): ConnectError =>
	refusal("aborted", "the daemon is stopping; subscribe again when it is back", "STOPPING");

/** The caller's token was taken back, or it was signed out: a cut as well. */
export const revoked = (): ConnectError =>
	refusal("aborted", "the token that opened this was taken back", "UNAUTHENTICATED");

/** Connect's own errors, such as a message that is too large, get a reason as well. */
export function explained(error: ConnectError): ConnectError {
	if (error.metadata.has(REASON_TRAILER)) return error;
	if (isMalformed(error)) {
		// Connect calls it an internal error, but the caller sent it.
		Object.assign(error, {
			code: Code.InvalidArgument,
			rawMessage: `this message cannot be read: ${error.rawMessage}`,
		});
	}
	return withReason(error, REASONS[error.code] ?? "INTERNAL");
}

const isMalformed = ({ code, rawMessage }: ConnectError): boolean =>
	code === Code.Internal && rawMessage.startsWith("parse binary: ");

function withReason(error: ConnectError, reason: Reason): ConnectError {
	const name = `REASON_CODE_${reason}`;
	error.metadata.set(REASON_TRAILER, name);
	error.details.push({ desc: ErrorInfoSchema, value: { reason: name, domain: REASON_DOMAIN } });
	return error;
}

const REASONS: Partial<Record<Code, Reason>> = {
	[Code.Canceled]: "ABORTED",
	[Code.InvalidArgument]: "PROTOCOL_ENVELOPE_INVALID",
	[Code.DeadlineExceeded]: "TIMEOUT",
	[Code.NotFound]: "NOT_FOUND",
	[Code.PermissionDenied]: "FORBIDDEN",
	[Code.ResourceExhausted]: "TOO_LARGE",
	[Code.Unimplemented]: "METHOD_NOT_ALLOWED",
	[Code.Unavailable]: "UNAVAILABLE",
	[Code.DataLoss]: "DATA_LOSS",
	[Code.Unauthenticated]: "UNAUTHENTICATED",
};
