/** Sleep that an abort ends at once. One listener on the signal for a whole run, and no timer left behind. */

import type { Clock } from "@nexus-stream/protocol/clock";

export interface Sleeper {
	/** Resolves after `ms` (never by itself when infinite), or as soon as the signal aborts. One sleep at a time. */
	sleep(ms: number): Promise<"rested" | "aborted">;
	/** Lets go of the signal. */
	close(): void;
}

export function createSleeper(clock: Clock, signal: AbortSignal): Sleeper {
	let wake: (() => void) | undefined;
	const onAbort = () => wake?.();
	signal.addEventListener("abort", onAbort);
	return {
		async sleep(ms) {
			if (signal.aborted) return "aborted";
			const { promise, resolve } = Promise.withResolvers<void>();
			// Timers drop the fraction of a millisecond: rounded up, a token is never early.
			const cancel = Number.isFinite(ms) ? clock.after(Math.ceil(ms), resolve) : undefined;
			wake = resolve;
			await promise;
			wake = undefined;
			cancel?.();
			return signal.aborted ? "aborted" : "rested";
		},
		close: () => signal.removeEventListener("abort", onAbort),
	};
}
