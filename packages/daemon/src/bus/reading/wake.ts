/** How whoever follows a log is told that it grew. */

import type { Batch } from "./batch.ts";

/** A log that grew, as a wake names it: the same object for all who follow the log. */
export interface Grown {
	/** Durable and visible up to here. */
	readonly head: number;
	readonly sealedAt: number | undefined;
	/** What became visible last. Undefined: what a reader would wait for now is not at hand later, so that each would ask the store. */
	readonly newest: Batch | undefined;
}

/** Called when something became visible, or the log ended; with the log, when it is known which one. */
export type Wake = (log?: Grown) => void;

export type WakeAll = (wakes: Iterable<Wake>, log?: Grown) => void;
