/** One platform call: limited and measured in time, every failure as one of the six platform faults. */

import type { Clock } from "@nexus-stream/protocol/clock";
import { PlatformError } from "../platform/platform-error.ts";
import type { DeliveryFields, StreamStatus } from "../port.ts";

/** Calls that must not happen twice: without an answer their outcome is unknown. */
const ONCE: ReadonlySet<string> = new Set(["create", "start", "append", "attach"]);

export const CALL_TIMEOUT_MS = 30_000;

export interface CallerOptions {
	clock: Clock;
	callTimeoutMs?: number;
	say(status: StreamStatus): void;
}

export type PlatformCaller = <T>(
	name: string,
	fields: DeliveryFields,
	work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

export function createCaller({ clock, callTimeoutMs = CALL_TIMEOUT_MS, say }: CallerOptions): PlatformCaller {
	return async (name, fields, work) => {
		const begun = clock.now();
		const abort = new AbortController();
		let cancel = () => {};
		const late = new Promise<never>((_, reject) => {
			cancel = clock.after(callTimeoutMs, () => {
				const error = new PlatformError("unknown_outcome", `${name}: no answer within ${callTimeoutMs} ms`);
				reject(error);
				abort.abort(error);
			});
		});
		const report = (ok: boolean, detail?: string) =>
			say({ type: "call", call: name, ms: clock.now() - begun, ok, detail: detail || undefined, ...fields });
		try {
			const result = await Promise.race([work(abort.signal), late]);
			report(true);
			return result;
		} catch (cause) {
			const error = asPlatformError(name, cause);
			report(false, `${error.fault}: ${error.message}`);
			throw error;
		} finally {
			cancel();
		}
	};
}

function asPlatformError(name: string, cause: unknown): PlatformError {
	const once = ONCE.has(name);
	if (!(cause instanceof PlatformError)) {
		const message = cause instanceof Error ? cause.message : String(cause);
		return new PlatformError(once ? "unknown_outcome" : "unavailable", `${name}: ${message}`, { cause });
	}
	if (cause.fault !== "unknown_outcome" || once) return cause;
	// Repeating it does no harm, so an unknown outcome is a plain failure.
	return new PlatformError("unavailable", cause.message, { cause });
}
