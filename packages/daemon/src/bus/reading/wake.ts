/** How the readers of a log learn that it grew. */

import type { Batch } from "./batch.ts";

/** A log that grew, as a wake names it: the same object for all who follow the log. */
export interface Grown {
	/** Durable and visible up to here. */
	readonly head: number;
	readonly sealedAt: number | undefined;
	/** The batch that became visible last. Undefined when it would not be at hand later, so that each reader has to ask the store. */
	readonly newest: Batch | undefined;
}

/** Called when something became visible, or the log ended; with the log, when it is known which one. */
export type Wake = (log?: Grown) => void;

export type WakeAll = (wakes: Iterable<Wake>, log?: Grown) => void;
