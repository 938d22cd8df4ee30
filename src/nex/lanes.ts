/** One after another for a session in a chat: answers keep their order on the platform, whoever of them is slow. */

import type { Delivery } from "../ledger/ledger.ts";
import { createKeyedLock } from "../std/lock.ts";

export interface Lanes {
	/** In the order of the calls, whichever session is found first. Rejects when the signal aborts before its turn has come. */
	inOrder<T>(
		row: Delivery,
		session: Promise<string | undefined>,
		signal: AbortSignal,
		work: () => Promise<T>,
	): Promise<T>;
}

export function createLanes(): Lanes {
	const lock = createKeyedLock();
	let entered: Promise<unknown> = Promise.resolve();
	return {
		async inOrder(row, session, signal, work) {
			const before = entered;
			entered = Promise.allSettled([before, session]);
			await before;
			const key = JSON.stringify([row.channel, row.account, row.target.to, row.target.thread_id, await session]);
			return lock(key, signal, work);
		},
	};
}
