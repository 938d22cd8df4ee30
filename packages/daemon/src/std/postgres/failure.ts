/** Failures of PostgreSQL by their SQLSTATE, as the neutral kinds that callers of a store know. */

/** A failure of PostgreSQL or of the connection to it. */
export interface PostgresFailure {
	kind: "corrupt" | "unwritable" | "full" | "locked" | "duplicate" | "unreachable" | "refused" | "outdated" | "other";
	message: string;
	/** The constraint that the failure names, if any. */
	constraint: string | undefined;
}

/** Raised by the function `must` of the schema: an expectation of a statement does not hold. */
export const UNMET = "NX001";

/** The first rule that a state begins with decides. */
const KINDS: readonly (readonly [state: string, kind: PostgresFailure["kind"]])[] = [
	["23505", "duplicate"],
	[UNMET, "refused"],
	["22", "refused"],
	["23", "refused"],
	["40001", "locked"],
	["40P01", "locked"],
	["55P03", "locked"],
	["53100", "full"],
	["58030", "full"],
	["25006", "unwritable"],
	["42501", "unwritable"],
	["53", "unreachable"],
	["57P", "unreachable"],
	["57014", "unreachable"],
	["08", "unreachable"],
	["XX001", "corrupt"],
	["XX002", "corrupt"],
	["3D000", "unreachable"],
	["28", "unreachable"],
	["42", "outdated"],
];

/** Whether the whole connection was lost, so that the server may have done what it was asked or not. */
export const isLost = (cause: unknown): boolean => {
	const state = stateOf(cause);
	return state === undefined || state.startsWith("08") || state.startsWith("57P");
};

/** The words of pg for a connection that ended; it gives them no code. */
const ENDED =
	/^(?:Connection terminated|Client (?:has encountered|was closed)|timeout expired|The server does not support SSL)/;

/** Undefined when the error comes neither from PostgreSQL nor from the connection to it. */
export function postgresFailure(cause: unknown): PostgresFailure | undefined {
	const error = rootOf(cause);
	if (!(error instanceof Error)) return undefined;
	const state = stateOf(error);
	const constraint = "constraint" in error && typeof error.constraint === "string" ? error.constraint : undefined;
	if (state !== undefined) {
		const kind = KINDS.find(([prefix]) => state.startsWith(prefix))?.[1] ?? "other";
		return { kind, message: error.message, constraint };
	}
	const isConnections = cause instanceof BatchFailure || isOfSocket(error) || ENDED.test(error.message);
	return isConnections ? { kind: "unreachable", message: error.message, constraint } : undefined;
}

/** Failures of files have a system call, too, but none of these. */
function isOfSocket(error: Error): boolean {
	if (!("syscall" in error)) return false;
	if (error.syscall === "connect" || error.syscall === "getaddrinfo") return true;
	return "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE" || error.code === "ETIMEDOUT");
}

/** A failed batch wraps what the server said. */
const rootOf = (cause: unknown): unknown => (cause instanceof BatchFailure ? rootOf(cause.cause) : cause);

/** The SQLSTATE of an answer of the server; undefined when the connection failed without one. */
export function stateOf(cause: unknown): string | undefined {
	const error = rootOf(cause);
	if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
	return typeof error.code === "string" ? error.code : undefined;
}

/** A batch failed. Nothing of it was applied when the server says so; otherwise `isSent` decides whether that is known. */
export class BatchFailure extends Error {
	/** The statement that failed; the number of statements when all of them ran and the end of the transaction failed. */
	readonly place: number;
	/** The server had it before the failure. */
	readonly isSent: boolean;

	constructor(cause: unknown, place: number, isSent: boolean) {
		super(cause instanceof Error ? cause.message : String(cause), { cause });
		this.name = "BatchFailure";
		this.place = place;
		this.isSent = isSent;
	}

	/** It may be applied or not. */
	get isUnknown(): boolean {
		return this.isSent && isLost(this.cause);
	}
}
