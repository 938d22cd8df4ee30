/** Accounts that are configured no more, or otherwise: their deliveries may end, then their processes do. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { ChannelAccount } from "../accounts/account.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";
import { sleep } from "./sleep.ts";

export interface Retirement {
	/** Resolves when the account is not listened to any more; the rest takes its time. */
	begin(account: ChannelAccount): Promise<void>;
	/** Resolves when all are gone. */
	settled(): Promise<void>;
}

export interface RetirementDeps {
	runner: DeliveryRunner;
	clock: Clock;
	log: Log;
	limits: { retireMs: number };
	/** This process stops. */
	signal: AbortSignal;
}

export function createRetirement({ runner, clock, log, limits, signal }: RetirementDeps): Retirement {
	const leaving = new Set<Promise<void>>();

	async function leave(account: ChannelAccount): Promise<void> {
		const enough = new AbortController();
		const limit = sleep(clock, limits.retireMs, AbortSignal.any([signal, enough.signal]));
		await Promise.race([runner.settledOf(account), limit]);
		enough.abort();
		account.retire();
		await account.stop();
	}

	return {
		async begin(account) {
			const facts = { channel: account.channel, account: account.id };
			await account.stopListening();
			const work = leave(account)
				.then(() => log.info(facts, "the account's processes have ended"))
				.catch((cause: unknown) => log.error({ ...facts, err: cause }, "an account's processes did not end cleanly"))
				.finally(() => leaving.delete(work));
			leaving.add(work);
		},
		settled: async () => void (await Promise.all(leaving)),
	};
}
