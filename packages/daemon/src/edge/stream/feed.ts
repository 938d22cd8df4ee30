/** State feeds: what is so now, then what changes. A reader that is behind gets the newest of each. */

import { Batch, type Cursor, type Wake } from "../../bus/bus.ts";

export interface Feed<State> {
	/** What is so now. */
	current(): readonly State[];
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (state: State) => void): () => void;
	/** Of what it is the state. */
	key(state: State): string;
}

export interface Backlog<State> {
	/** What one reader has not got yet, by key. */
	readonly waiting: Map<string, State>;
	stop(): void;
}

export function backlogOf<State>({ current, subscribe, key }: Feed<State>, grown: () => void): Backlog<State> {
	const waiting = new Map<string, State>();
	const take = (state: State) => {
		// Anew at the end: changes arrive in their order.
		waiting.delete(key(state));
		waiting.set(key(state), state);
		grown();
	};
	const stop = subscribe(take);
	for (const state of current()) take(state);
	return { waiting, stop };
}

/** Each state is a record of one line. Offsets count what this reader got: they are no places to resume from. */
export function feedCursor<State>(feed: Feed<State> & { record(state: State): string }): Cursor {
	let offset = 0;
	let wake: Wake = () => {};
	const { waiting, stop } = backlogOf(feed, () => wake());
	return {
		get offset() {
			return offset;
		},
		ended: false,
		next() {
			if (waiting.size === 0) return undefined;
			const batch = Batch.of(offset + 1, [...waiting.values()].map(feed.record));
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
