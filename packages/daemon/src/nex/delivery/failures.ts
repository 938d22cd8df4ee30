/** Records messages that a platform accepted and later reported as undelivered: their deliveries are not complete. */

import type { MessageFailure } from "@nexus-stream/adapter/port";
import { Refused } from "@nexus-stream/protocol";
import { type Deliveries, deliveryWrites, type MessageAddress } from "../../ledger/deliveries/port.ts";
import type { DeliveryRunner, DeliveryRunnerDeps } from "./delivery-runner.ts";
import { DeliveryRecord } from "./record.ts";

type Failure = MessageAddress & MessageFailure;

export interface FailuresDeps extends Pick<DeliveryRunnerDeps, "records" | "stamp" | "log"> {
	deliveries: Deliveries;
	/** A function, because the runner is created later. */
	runner(): DeliveryRunner;
}

export function createFailures(deps: FailuresDeps) {
	const { log } = deps;
	const taking = new Set<Promise<void>>();
	return {
		take(failure: Failure): void {
			const { channel, account, messageId } = failure;
			const work = record(deps, failure)
				.catch((cause: unknown) => {
					// A refusal is permanent and already logged: the platform need not report the failure again.
					if (cause instanceof Refused && cause.refusal !== "fenced") return;
					log.error({ channel, account, messageId, err: cause }, "an undelivered message could not be recorded");
					throw cause;
				})
				.finally(() => taking.delete(work));
			taking.add(work);
			work.catch(() => {}); // `recorded` reports it.
		},
		/** Resolves when all failures so far are durable; rejects when one could not be recorded. */
		recorded: async () => void (await Promise.all(taking)),
	};
}

async function record({ deliveries, records, runner, stamp, log }: FailuresDeps, failure: Failure): Promise<void> {
	const { channel, account, messageId, error } = failure;
	const facts = { channel, account, messageId, error };
	const found = runner().ofMessage(failure);
	const owner = found ? { delivery: found.live.row, nonce: found.nonce } : await deliveries.ofMessage(failure);
	if (!owner) return log.warn(facts, "the platform reported an undelivered message that belongs to no delivery");
	const { nonce, delivery } = owner;
	const stored = delivery.messages.find((message) => message.nonce === nonce);
	if (stored?.error !== undefined) return;
	log.error(
		{ ...facts, delivery: delivery.id, runId: delivery.runId },
		"the platform accepted a message and did not deliver it",
	);
	// The delivery may have been resumed during the lookup.
	const live = runner().live(delivery.id);
	if (live) {
		live.failed(nonce, { messageId, error });
		return live.recorded();
	}
	const ended = new DeliveryRecord(delivery.id, records);
	ended.add(deliveryWrites.failed(delivery.id, nonce, { messageId, error }, stamp()));
	await ended.durable();
}
