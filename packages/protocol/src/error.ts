/** The one error class, its closed list of codes, and the one table to HTTP status, gRPC status and exit code. */

import type { EndFrame, EndReason } from "./frames/frame.ts";

/** [HTTP status, gRPC status, exit code of the CLI] */
export const ERROR_TABLE = {
	/** The request is malformed; sending it again will not help. */
	invalid: [400, 3, 2],
	/** No or a wrong token. */
	unauthenticated: [401, 16, 3],
	/** Known caller, forbidden action (foreign Host or Origin). */
	forbidden: [403, 7, 3],
	not_found: [404, 5, 4],
	method_not_allowed: [405, 12, 2],
	/** The state does not allow it: a second writer, a sealed log, a second daemon. */
	conflict: [409, 10, 5],
	/** It is not in the state that this needs: switched off, without a key, of another kind. Something has to be changed first. */
	precondition: [409, 9, 5],
	/** It existed; retention has removed it. */
	expired: [410, 11, 4],
	too_large: [413, 8, 2],
	/** A limit on count or rate is reached; try later. */
	busy: [429, 8, 6],
	/** The caller or a person stopped it. */
	aborted: [499, 1, 130],
	internal: [500, 13, 1],
	/** Starting, stopping, or a part that is needed is not there. */
	unavailable: [503, 14, 7],
	/** The agent or the model failed. */
	engine_failed: [502, 14, 8],
	/** A watchdog ended it. */
	timeout: [504, 4, 9],
	/** The process died while it ran; recovery wrote the end. */
	crashed: [500, 13, 1],
	/** Stored data is damaged or of a newer version. */
	data_loss: [500, 15, 10],
	/** The configuration is wrong. */
	config: [500, 9, 78],
} as const satisfies Record<string, readonly [http: number, grpc: number, exit: number]>;

export type ErrorCode = keyof typeof ERROR_TABLE;

export class NexusError extends Error {
	readonly code: ErrorCode;
	/** More exactly than the code says it. */
	readonly reason?: Reason;

	constructor(code: ErrorCode, message: string, options?: { cause?: unknown; reason?: Reason }) {
		super(message, options);
		this.name = "NexusError";
		this.code = code;
		if (options?.reason !== undefined) this.reason = options.reason;
	}

	/** The body that every door answers with. */
	toJSON(): { error: { code: ErrorCode; message: string } } {
		return { error: { code: this.code, message: this.message } };
	}
}

/** Why a store did not take one unit of a commit, while the others of that commit stand. */
export type RefusalKind =
	/** It is stored already. */
	| "duplicate"
	/** A precondition of a write does not hold, or its values cannot be stored. */
	| "conflict"
	/** Another daemon has taken over what this one owned: it may write nothing any more. */
	| "fenced";

export class Refused extends NexusError {
	readonly refusal: RefusalKind;

	constructor(refusal: RefusalKind, message: string, options?: { cause?: unknown }) {
		super(refusal === "fenced" ? "unavailable" : "conflict", message, options);
		this.refusal = refusal;
	}
}

const REASON_OF_CODE: Readonly<Record<ErrorCode, Reason>> = {
	invalid: "PROTOCOL_ENVELOPE_INVALID",
	unauthenticated: "UNAUTHENTICATED",
	forbidden: "FORBIDDEN",
	not_found: "NOT_FOUND",
	method_not_allowed: "METHOD_NOT_ALLOWED",
	conflict: "CONFLICT",
	precondition: "PRECONDITION",
	expired: "EXPIRED",
	too_large: "TOO_LARGE",
	busy: "BUSY",
	aborted: "ABORTED",
	internal: "INTERNAL",
	unavailable: "UNAVAILABLE",
	engine_failed: "ENGINE_FAILED",
	timeout: "TIMEOUT",
	crashed: "CRASHED",
	data_loss: "DATA_LOSS",
	config: "CONFIG",
};

/** The default reason for each error code. */
export const reasonOf = (code: ErrorCode): Reason => REASON_OF_CODE[code];

/** The recorded reason of a failure; without one, the default for its code. */
export const reasonOfFailure = ({ code, reason }: { code: string; reason?: string }): Reason =>
	(reason as Reason | undefined) ?? (isErrorCode(code) ? reasonOf(code) : "INTERNAL");

/** Why a run ended, as the runtime contract names it; UNSPECIFIED when it completed. */
export function reasonOfEnd({ reason, error }: Pick<EndFrame, "reason" | "error">): Reason {
	if (reason === "completed") return "UNSPECIFIED";
	if (error?.reason !== undefined) return error.reason as Reason;
	const code = reason === "error" && error && isErrorCode(error.code) ? error.code : CODE_OF_END[reason];
	return reasonOf(code);
}

const CODE_OF_END = {
	aborted: "aborted",
	error: "engine_failed",
	timeout: "timeout",
	crashed: "crashed",
} as const satisfies Record<Exclude<EndReason, "completed">, ErrorCode>;

export const httpStatusOf = (code: ErrorCode): number => ERROR_TABLE[code][0];
export const grpcStatusOf = (code: ErrorCode): number => ERROR_TABLE[code][1];
export const exitCodeOf = (code: ErrorCode): number => ERROR_TABLE[code][2];

export const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(ERROR_TABLE, text);

/** The one funnel from `unknown`: keeps a NexusError, wraps everything else. */
export function toNexusError(cause: unknown, code: ErrorCode = "internal"): NexusError {
	if (cause instanceof NexusError) return cause;
	return new NexusError(code, wordsOf(cause) || "unknown error", { cause });
}

/** The message of a thrown value. Any value can be thrown, and this function must not throw. Empty when there is no message. */
export function wordsOf(cause: unknown): string {
	try {
		const said: unknown = cause instanceof Error ? cause.message : cause;
		if (said === undefined) return "";
		return typeof said === "object" ? (JSON.stringify(said) ?? "") : String(said as string | number | symbol);
	} catch {
		return "something that cannot be shown";
	}
}

/**
 * Why something was refused or failed, as the runtime contract names it: finer than the error's code, and stable for programs. The names
 * of `ReasonCode` in `proto/nexus/runtime/v1/common.proto`, without their prefix.
 */
export type Reason =
	| "UNSPECIFIED"
	| "PROTOCOL_ENVELOPE_INVALID"
	| "UNAUTHENTICATED"
	| "FORBIDDEN"
	| "NOT_FOUND"
	| "EXPIRED"
	| "CONFLICT"
	| "PRECONDITION"
	| "TOO_LARGE"
	| "BUSY"
	| "UNAVAILABLE"
	| "INTERNAL"
	| "DATA_LOSS"
	| "CONFIG"
	| "METHOD_NOT_ALLOWED"
	| "ABORTED"
	| "TIMEOUT"
	| "CRASHED"
	| "ENGINE_FAILED"
	| "STOPPING"
	| "STALLED"
	| "IDEMPOTENCY_CONFLICT"
	| "USER_TOKEN_INVALID"
	| "APP_ID_REQUIRED"
	| "AI_CONNECTOR_ID_REQUIRED"
	| "AI_REQUEST_CREDENTIAL_MISSING"
	| "AI_REQUEST_CREDENTIAL_CONFLICT"
	| "AI_CONNECTOR_NOT_FOUND"
	| "AI_CONNECTOR_DISABLED"
	| "AI_CONNECTOR_CREDENTIAL_MISSING"
	| "AI_ENDPOINT_FORBIDDEN"
	| "AI_ENDPOINT_UNRESOLVED"
	| "AI_MODEL_NOT_FOUND"
	| "AI_SCENARIO_UNSUPPORTED"
	| "AI_PROVIDER_TIMEOUT"
	| "AI_PROVIDER_FAILED"
	| "APP_MESSAGE_PAYLOAD_TOO_LARGE"
	| "APP_MESSAGE_RATE_LIMITED"
	| "APP_MESSAGE_LOOP_DETECTED"
	| "WORKFLOW_INVALID"
	| "CHECKSUM_MISMATCH"
	| "QUOTA_EXCEEDED";
