/** The daemon's state as a feed: what changes it says so, and what can only be seen is looked at while somebody listens. */

import type { HealthFeed } from "../edge/edge.ts";
import type { DaemonState } from "../protocol/protocol.ts";
import type { Clock } from "../std/clock.ts";

export interface Health extends HealthFeed {
	/** The state may have changed: who listens is told, in this very tick, when it has. */
	check(): void;
}

/** A store that refuses commits says nothing by itself. */
const LOOK_MS = 1000;

export function createHealth(state: () => DaemonState, clock: Clock): Health {
	const listeners = new Set<(state: DaemonState) => void>();
	let last = state();
	let stopLooking = () => {};
	const check = () => {
		const now = state();
		if (now === last) return;
		last = now;
		for (const listener of [...listeners]) listener(now);
	};
	const look = () => {
		stopLooking = clock.after(LOOK_MS, () => {
			check();
			if (listeners.size > 0) look();
		});
	};
	return {
		state,
		check,
		subscribe(listener) {
			// What changed before is no news to who begins with the current state.
			check();
			if (listeners.size === 0) look();
			// A function may be given twice.
			const own = (next: DaemonState) => listener(next);
			listeners.add(own);
			return () => {
				listeners.delete(own);
				if (listeners.size === 0) stopLooking();
			};
		},
	};
}
