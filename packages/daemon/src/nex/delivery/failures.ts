/** Messages that a platform had taken and did not bring to their readers: the deliveries that were thought complete are not. */

import type { MessageFailure } from "@nexus-stream/adapter/host";
import { Refused } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { type Deliveries, deliveryWrites, type MessageAddress } from "../../ledger/ledger.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";
import { DeliveryRecord, type Records } from "./record.ts";

type Failure = MessageAddress & MessageFailure;

export interface FailuresDeps {
	deliveries: Deliveries;
	records: Records;
	/** It is made after this. */
	runner(): DeliveryRunner;
	stamp: () => number;
	log: Log;
}

export interface Failures {
	take(failure: Failure): void;
	/** Resolves when all so far are on record; rejects when one is not. */
	recorded(): Promise<void>;
}

export function createFailures(deps: FailuresDeps): Failures {
	const { log } = deps;
	const taking = new Set<Promise<void>>();
	return {
		take(failure) {
			const { channel, account, messageId } = failure;
			const work = record(deps, failure)
				.catch((cause: unknown) => {
					// What can never be stored is told, and not asked for again.
					if (cause instanceof Refused && cause.refusal !== "fenced") return;
					log.error({ channel, account, messageId, err: cause }, "a message that was not delivered is not on record");
					throw cause;
				})
				.finally(() => taking.delete(work));
			taking.add(work);
			work.catch(() => {}); // Whoever asks hears of it.
		},
		recorded: async () => void (await Promise.all(taking)),
	};
}

async function record({ deliveries, records, runner, stamp, log }: FailuresDeps, failure: Failure): Promise<void> {
	const { channel, account, messageId, error } = failure;
	const facts = { channel, account, messageId, error };
	const found = runner().ofMessage(failure);
	const known = found ? { delivery: found.live.row, nonce: found.nonce } : await deliveries.ofMessage(failure);
	if (!known) return log.warn(facts, "a message that no delivery knows was not delivered");
	const { nonce, delivery } = known;
	const stored = delivery.messages.find((message) => message.nonce === nonce);
	if (stored?.error !== undefined) return;
	const of = { delivery: delivery.id, runId: delivery.runId };
	log.error({ ...facts, ...of }, "the platform took a message and did not deliver it");
	// It may have been taken up again while it was looked for.
	const tracked = runner().live(delivery.id);
	if (tracked) {
		tracked.change("failed", nonce, { messageId, error });
		return tracked.recorded();
	}
	const ended = new DeliveryRecord(delivery.id, records);
	ended.add(deliveryWrites.failed(delivery.id, nonce, { messageId, error }, stamp()));
	await ended.durable();
}
