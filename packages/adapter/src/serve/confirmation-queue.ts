/** The daemon stores inbound messages concurrently, and the adapter confirms them to the platform in order: a slow message does not delay other chats. */

/** Messages that the daemon has not stored yet; beyond that the platform waits. */
const UNSAFE_MAX = 64;

export interface ConfirmationQueue {
	/**
	 * `confirm` is called once this and everything before it is safe; after one that never becomes safe nothing is confirmed any more.
	 * Resolves when there is room for another, and rejects when one of those before it failed.
	 */
	add(safe: Promise<void> | undefined, confirm: () => void): Promise<void>;
	/** Resolves when all messages so far are confirmed. */
	confirmed(): Promise<void>;
}

export function createConfirmationQueue(unsafeMax = UNSAFE_MAX): ConfirmationQueue {
	let last: Promise<void> = Promise.resolve();
	/** In order. */
	const open = new Set<Promise<void>>();
	return {
		async add(safe, confirm) {
			// `mine` below reports the failure; without this handler Node would call the rejection unhandled until then.
			safe?.catch(() => {});
			const mine = last.then(() => safe).then(confirm);
			last = mine;
			open.add(mine);
			mine.then(
				() => open.delete(mine),
				() => {},
			);
			for (const oldest of open) {
				if (open.size < unsafeMax) break;
				await oldest;
			}
		},
		confirmed: () => last,
	};
}
