/** A state feed as a cursor: what is so now, then what changes. A reader that is behind gets the newest of each. */

import { Batch, type Cursor, type Wake } from "../../bus/bus.ts";

export interface Feed<State> {
	/** What is so now. */
	current(): readonly State[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (state: State) => void): () => void;
	/** Of what it is the state. */
	key(state: State): string;
	/** One line. */
	record(state: State): string;
}

/** Offsets count what this reader got: they are no places to resume from. */
export function feedCursor<State>({ current, subscribe, key, record }: Feed<State>): Cursor {
	const waiting = new Map<string, State>();
	let offset = 0;
	let wake: Wake = () => {};
	const take = (state: State) => {
		waiting.delete(key(state));
		waiting.set(key(state), state);
		wake();
	};
	const stop = subscribe(take);
	for (const state of current()) take(state);
	return {
		get offset() {
			return offset;
		},
		ended: false,
		next() {
			if (waiting.size === 0) return undefined;
			const batch = Batch.of(offset + 1, [...waiting.values()].map(record));
			waiting.clear();
			offset = batch.last;
			return batch;
		},
		check() {},
		onWake(listener) {
			wake = listener;
		},
		close() {
			waiting.clear();
			stop();
		},
	};
}
