/** Work with a time limit that can be stopped, and is waited for only so long once it was (I12). */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";

export interface Bounds {
	clock: Clock;
	limitMs: number;
	/** From the stop on; asked for at the stop. */
	graceMs(): number;
	/** Aborted by the time limit, or by the caller that stops the work. */
	stop: AbortController;
}

/** Rejects with the reason of the stop when the work does not end by itself. What it does after its grace is ignored. */
export function bounded<T>(work: Promise<T>, { clock, limitMs, graceMs, stop }: Bounds): Promise<T> {
	const { promise, resolve, reject } = Promise.withResolvers<T>();
	const { signal } = stop;
	let giveUp = () => {};
	const limit = clock.after(limitMs, () => {
		stop.abort(new NexusError("timeout", `it took longer than ${limitMs} ms`));
	});
	const stopped = () => {
		giveUp = clock.after(graceMs(), () => reject(signal.reason as Error));
	};
	if (signal.aborted) stopped();
	signal.addEventListener("abort", stopped, { once: true });
	work.then(resolve, (cause: unknown) => reject(signal.aborted ? (signal.reason as Error) : toNexusError(cause)));
	return promise.finally(() => {
		limit();
		giveUp();
		signal.removeEventListener("abort", stopped);
	});
}
