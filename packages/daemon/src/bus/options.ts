/** The options of a Bus. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Write } from "../std/write.ts";
import type { BusLimits } from "./limits.ts";
import type { LogSpec } from "./port.ts";
import type { Storage } from "./storage.ts";

/** Changes of stored things that commit as one. */
export interface Changes {
	readonly writes: readonly Write[];
	/** The log whose records they commit with, if any. */
	readonly log?: LogSpec | undefined;
	/** The log begins with them. */
	readonly isNew?: boolean;
}

/** Records of changes, as further changes of the same unit. Pure but for the clock: for a unit that is tried again they are made again. */
export type Tell = (changes: Changes) => readonly Write[];

export interface BusOptions {
	storage: Storage;
	/** The name of this daemon in the store. */
	name?: string;
	/** Other daemons use the store too. Without it, every earlier start counts as dead: this daemon holds the store's lock. */
	shared?: boolean;
	limits?: Partial<BusLimits>;
	/** Asked for every unit with changes, and for every new log. */
	tell?: Tell;
	clock: Clock;
	log: Log;
}

/** The changes, followed by the records of them. */
export function withTellWrites(tell: Tell | undefined, changes: Changes): readonly Write[] {
	const { writes, isNew = false } = changes;
	if (!tell || (writes.length === 0 && !isNew)) return writes;
	const told = tell(changes);
	return told.length === 0 ? writes : [...writes, ...told];
}
