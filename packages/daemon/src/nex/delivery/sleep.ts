/** Waiting that ends early when it is no longer needed. */

import type { Clock } from "@nexus-stream/protocol/clock";

/** Resolves after `ms`, or as soon as the signal aborts. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
	if (signal.aborted) return Promise.resolve();
	return new Promise((resolve) => {
		const done = () => {
			cancel();
			signal.removeEventListener("abort", done);
			resolve();
		};
		const cancel = clock.after(ms, done);
		signal.addEventListener("abort", done, { once: true });
	});
}
