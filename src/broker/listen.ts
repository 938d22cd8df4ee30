/** A listener of a run is one more reader of its log: it sees what is durable, from the first record on, whenever it came. */

import { type Bus, follow } from "../bus/bus.ts";
import {
	createToEvents,
	createVerifier,
	decodeFrame,
	isDamage,
	NexusError,
	type StreamEvent,
	toNexusError,
	wordsOf,
} from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";

/** Never rejects: a listener that throws is logged and told the next event. */
export async function listen(bus: Bus, runId: string, listener: (event: StreamEvent) => void, log: Log): Promise<void> {
	const events = createToEvents();
	const verifier = createVerifier();
	try {
		const cursor = await bus.cursor({ log: runId }, 0);
		for await (const batch of follow(cursor)) {
			for (const record of batch.records) {
				const frame = decodeFrame(record);
				const violation = verifier.push(frame);
				if (isDamage(violation)) throw new NexusError("data_loss", `${violation.message} (${violation.rule})`);
				const event = events.push(frame);
				if (event) tell(listener, event, runId, log);
			}
		}
	} catch (cause) {
		log.warn({ runId, err: cause }, "a listener was cut off from its run");
		// A stop does not end the run (I3): what became of it is in its log.
		if (toNexusError(cause).code === "unavailable") return;
		const error = `The answer could not be read: ${wordsOf(cause)}`;
		tell(listener, { type: "stream_error", error, partial: true }, runId, log);
	}
}

function tell(listener: (event: StreamEvent) => void, event: StreamEvent, runId: string, log: Log): void {
	try {
		listener(event);
	} catch (cause) {
		log.error({ runId, err: cause }, "a listener of the run threw");
	}
}
