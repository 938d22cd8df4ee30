/** Back-off and sleeping, for every loop that tries again. */

import type { Clock } from "./clock.ts";

/** The first wait, and the longest. */
export interface Backoff {
	readonly firstMs: number;
	readonly maxMs: number;
}

/** The wait after this many failures before it: `firstMs`, then twice as long each time, up to `maxMs`. */
export const backoffMs = ({ firstMs, maxMs }: Backoff, failuresBefore: number): number =>
	Math.min(firstMs * 2 ** Math.min(Math.max(failuresBefore, 0), 30), maxMs);

/** A quarter less to a quarter more, so that clients that failed together do not return together. `random` is in [0, 1). */
export const jittered = (ms: number, random: number): number => ms * (0.75 + random / 2);

/** Resolves after `ms`, or as soon as the signal aborts. Leaves neither a timer nor a listener. Only a `due` sleep keeps the process alive. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal, due?: "due"): Promise<void> {
	return new Promise((resolve) => {
		if (signal?.aborted) return resolve();
		const end = () => {
			cancel();
			signal?.removeEventListener("abort", end);
			resolve();
		};
		const cancel = clock.after(ms, end, due);
		signal?.addEventListener("abort", end);
	});
}
