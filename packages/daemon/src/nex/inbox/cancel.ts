/** Takes back a message that waits (A27). */

import { NexusError } from "@nexus-stream/protocol";
import type { InboundEvent, Ledger } from "../../ledger/ledger.ts";
import type { Sessions } from "./sessions.ts";

/** Throws `not_found`, and `conflict` once it does not wait any more. */
export async function cancelWaiting({ inbox }: Ledger, sessions: Sessions, eventId: string): Promise<InboundEvent> {
	const event = await inbox.get(eventId);
	if (!event) throw new NexusError("not_found", `there is no message ${eventId}`);
	const { state } = event.disposition;
	if (state !== "queued") throw new NexusError("conflict", `message ${eventId} is ${state}: it waits no longer`);
	const cancelled = await sessions.cancel(event.session, (message) => message.eventId === eventId);
	if (cancelled === 0)
		throw new NexusError("conflict", `Message ${eventId} is about to start, or waits in another daemon.`);
	return { ...event, disposition: { state: "cancelled" } };
}
