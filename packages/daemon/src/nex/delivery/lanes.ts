/** One after another for a session in a chat: answers keep their order on the platform, whoever of them is slow. */

import type { Delivery } from "../../ledger/ledger.ts";
import { createInTurn, createKeyedLock } from "../../std/lock.ts";

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
	const inTurn = createInTurn();
	return {
		async inOrder({ channel, account, target }, session, signal, work) {
			const key = JSON.stringify([channel, account, target.to, target.thread_id, await inTurn(session)]);
			return lock(key, signal, work);
		},
	};
}
