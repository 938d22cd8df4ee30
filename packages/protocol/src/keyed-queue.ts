/** Work of one key runs one piece at a time, in the order of the calls; other keys do not wait. */

export interface KeyedQueue {
	/**
	 * Runs `work` when everything queued before it under this key has ended; of work that has begun already, the result waits for its turn.
	 * Rejects when the signal aborts before that.
	 */
	run<T>(key: string, work: Promise<T> | (() => Promise<T>), signal?: AbortSignal): Promise<T>;
	/** Resolves with a function that ends the turn. */
	hold(key: string, signal?: AbortSignal): Promise<() => void>;
	/** Pieces of work under this key, the running one included. */
	size(key: string): number;
	/** Resolves when nothing is queued under any key. */
	idle(): Promise<void>;
}

export function createKeyedQueue(): KeyedQueue {
	const lines = new Map<string, { last: Promise<unknown>; size: number }>();
	const queue: KeyedQueue = {
		run<T>(key: string, work: Promise<T> | (() => Promise<T>), signal?: AbortSignal): Promise<T> {
			// The caller gets the failure in its turn.
			if (work instanceof Promise) work.catch(() => {});
			const line = lines.get(key) ?? { last: Promise.resolve(), size: 0 };
			lines.set(key, line);
			line.size++;
			let isWaiting = true;
			const mine = line.last.then(() => {
				signal?.throwIfAborted();
				isWaiting = false;
				return typeof work === "function" ? work() : work;
			});
			// The next one waits whether this one fails or not; after an abort it still waits for those before this one.
			const ended = mine.then(
				() => {},
				() => {},
			);
			line.last = ended.then(() => {
				if (--line.size === 0) lines.delete(key);
			});
			return signal === undefined ? mine : unlessAbortedBefore(mine, ended, signal, () => isWaiting);
		},
		hold: (key, signal) =>
			new Promise((begun, reject) => {
				const turn = () => new Promise<void>((release) => begun(release));
				queue.run(key, turn, signal).catch(reject);
			}),
		size: (key) => lines.get(key)?.size ?? 0,
		async idle() {
			while (lines.size > 0) await Promise.all([...lines.values()].map(({ last }) => last));
		},
	};
	return queue;
}

/** Settles with the work, or rejects as soon as the signal aborts while the work is still waiting. */
function unlessAbortedBefore<T>(
	work: Promise<T>,
	ended: Promise<void>,
	signal: AbortSignal,
	isWaiting: () => boolean,
): Promise<T> {
	return new Promise((resolve, reject) => {
		const abort = () => {
			if (isWaiting()) reject(signal.reason as Error);
		};
		if (signal.aborted) abort();
		signal.addEventListener("abort", abort, { once: true });
		void ended.then(() => signal.removeEventListener("abort", abort));
		work.then(resolve, reject);
	});
}
