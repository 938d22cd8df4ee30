/** One after another for a session in a chat: answers keep their order on the platform, whoever of them is slow. */

import type { Delivery } from "../ledger/ledger.ts";
import { createLock, type Lock } from "../std/lock.ts";

export interface Lanes {
	/** Rejects when the signal aborts before its turn has come. */
	inOrder<T>(row: Delivery, session: string | undefined, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createLanes(): Lanes {
	const lanes = new Map<string, { lock: Lock; users: number }>();
	return {
		async inOrder(row, session, signal, work) {
			const key = JSON.stringify([row.channel, row.account, row.target.to, row.target.thread_id, session]);
			const lane = lanes.get(key) ?? { lock: createLock(), users: 0 };
			lanes.set(key, lane);
			lane.users++;
			let release = () => {};
			try {
				release = await lane.lock(signal);
				return await work();
			} finally {
				release();
				if (--lane.users === 0) lanes.delete(key);
			}
		},
	};
}
