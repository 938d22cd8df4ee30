/** State feeds: what is so now, then what changes. A reader that is behind gets the newest of each. */

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
