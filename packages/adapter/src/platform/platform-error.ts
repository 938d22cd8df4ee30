/** A platform refused a call or did not answer: the one error that platform code throws. */

import type { PlatformFault } from "../port.ts";

export class PlatformError extends Error {
	readonly fault: PlatformFault;
	readonly retryAfterMs: number | undefined;

	constructor(fault: PlatformFault, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
		super(message, { cause: options.cause });
		this.name = "PlatformError";
		this.fault = fault;
		const { retryAfterMs } = options;
		// Drop NaN: one NaN would disable the rate gate for good.
		this.retryAfterMs = retryAfterMs !== undefined && retryAfterMs >= 0 ? retryAfterMs : undefined;
	}
}

/** For `find` when the platform answered and the outcome is still unknown. Not retried: asking again would not help. */
export const cannotTell = (message: string): PlatformError => new PlatformError("invalid", message);

/** A call that prepares the one that people see: an unknown outcome of it is a plain failure. */
export async function harmless<T>(work: Promise<T>): Promise<T> {
	try {
		return await work;
	} catch (cause) {
		if (!(cause instanceof PlatformError) || cause.fault !== "unknown_outcome") throw cause;
		throw new PlatformError("unavailable", cause.message, { cause });
	}
}
