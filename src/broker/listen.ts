/** A listener of a run is one more reader of its log: it sees what is durable, from the first record on, whenever it came. */

import { type Bus, follow } from "../bus/bus.ts";
import { createToEvents, decodeFrame, type StreamEvent } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";

/** Never rejects: a listener that throws is logged and told the next event. */
export async function listen(bus: Bus, runId: string, listener: (event: StreamEvent) => void, log: Log): Promise<void> {
	const events = createToEvents();
	try {
		const cursor = await bus.cursor({ log: runId }, 0);
		for await (const batch of follow(cursor)) {
			for (const record of batch.records) {
				const event = events.push(decodeFrame(record));
				if (event) tell(listener, event, runId, log);
			}
		}
	} catch (cause) {
		log.warn({ runId, err: cause }, "a listener was cut off from its run");
	}
}

function tell(listener: (event: StreamEvent) => void, event: StreamEvent, runId: string, log: Log): void {
	try {
		listener(event);
	} catch (cause) {
		log.error({ runId, err: cause }, "a listener of the run threw");
	}
}
