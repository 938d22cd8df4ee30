/** One at a time, in the order of asking. */

/** Results in the order of the calls, however long each of them takes. */
export type InTurn = <T>(work: Promise<T>) => Promise<T>;

export function createInTurn(): InTurn {
	let last: Promise<unknown> = Promise.resolve();
	return async (work) => {
		const before = last;
		last = Promise.allSettled([before, work]);
		await before;
		return work;
	};
}

/** Resolves with how to release it; rejects when the signal aborts first. */
export type Lock = (signal: AbortSignal) => Promise<() => void>;

export function createLock(): Lock {
	let tail: Promise<void> = Promise.resolve();
	return async (signal) => {
		const before = tail;
		const { promise, resolve: release } = Promise.withResolvers<void>();
		// The next caller waits for this one even when it gives up: for those before it.
		tail = before.then(() => promise);
		const { promise: aborted, reject } = Promise.withResolvers<never>();
		const fail = () => reject(new DOMException("No longer waited for.", "AbortError"));
		if (signal.aborted) fail();
		signal.addEventListener("abort", fail, { once: true });
		try {
			await Promise.race([before, aborted]);
			return release;
		} catch (cause) {
			release();
			throw cause;
		} finally {
			signal.removeEventListener("abort", fail);
		}
	};
}
