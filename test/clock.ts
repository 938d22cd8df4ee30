/** Time that only the test moves. */

import type { Clock } from "../packages/protocol/src/clock.ts";

export interface ManualClock extends Clock {
	/** Moves time on and runs what falls due, in order. */
	advance(ms: number): void;
	/** Time passes and nothing runs, as while something else keeps the event loop busy. What fell due runs, late, at the next advance. */
	block(ms: number): void;
}

/** A clock that stands still until it is moved. */
export function manualClock(start = 0): ManualClock {
	let now = start;
	let order = 0;
	const due = new Map<number, { at: number; callback: () => void }>();
	const earliest = (limit: number) => {
		let found: [number, { at: number; callback: () => void }] | undefined;
		for (const entry of due) if (entry[1].at <= limit && (!found || entry[1].at < found[1].at)) found = entry;
		return found;
	};
	return {
		now: () => now,
		after(ms, callback) {
			const id = order++;
			due.set(id, { at: now + ms, callback });
			return () => void due.delete(id);
		},
		advance(ms) {
			const limit = now + ms;
			for (let next = earliest(limit); next; next = earliest(limit)) {
				due.delete(next[0]);
				now = Math.max(now, next[1].at);
				next[1].callback();
			}
			now = limit;
		},
		block(ms) {
			now += ms;
		},
	};
}
