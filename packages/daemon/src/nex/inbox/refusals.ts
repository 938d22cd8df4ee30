/** Messages that are not taken in: on record with the reason, few enough not to fill the disk, and told to the sender where that helps. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import { type InboundEvent, inboxWrites } from "../../ledger/ledger.ts";
import type { InboundLimits } from "./config.ts";
import type { Destination, InboxMessage } from "./message.ts";

export interface InboxStats {
	received: number;
	/** Messages that a platform or client sent again. */
	duplicates: number;
	rejected: number;
}

export interface RefusalsDeps {
	bus: Bus;
	limits: Pick<InboundLimits, "rejectedTextCharsMax" | "rejectedEventsMax" | "busyReplyMs">;
	/** Says something that is not an answer to a run. Never rejects. */
	tell(place: Destination, text: string): void;
	clock: Clock;
	log: Log;
}

/** How often rejected messages are counted and the oldest forgotten. */
const REJECTIONS_PER_SWEEP = 64;

export class Refusals {
	readonly #deps: RefusalsDeps;
	readonly #stats: InboxStats;
	/** Session → when it was last told that it is busy. */
	readonly #busyTold = new Map<string, number>();

	constructor(deps: RefusalsDeps, stats: InboxStats) {
		this.#deps = deps;
		this.#stats = stats;
	}

	async reject(
		message: InboxMessage,
		because: string,
		state: "rejected" | "dropped" = "rejected",
	): Promise<InboundEvent> {
		const { bus, limits, log } = this.#deps;
		const { eventId, origin } = message;
		const text = message.text.slice(0, limits.rejectedTextCharsMax).toWellFormed();
		const event: InboundEvent = { ...message, text, attachments: [], disposition: { state, because } };
		const isSweep = ++this.#stats.rejected % REJECTIONS_PER_SWEEP === 0;
		const forget = isSweep ? [inboxWrites.forgetRejected(limits.rejectedEventsMax)] : [];
		await bus.write([inboxWrites.accept(event), ...forget], ADMIT_MS_MAX);
		log.debug({ eventId, channel: origin.channel, sender: origin.sender, because }, "a message was not let in");
		return event;
	}

	/** Its sender stopped it before the queue saw it. */
	async cancel(message: InboxMessage): Promise<InboundEvent> {
		const event: InboundEvent = { ...message, attachments: [], disposition: { state: "cancelled" } };
		await this.#deps.bus.write([inboxWrites.accept(event)], ADMIT_MS_MAX);
		return event;
	}

	/** The sender is told now and then, not for each message. */
	sayBusy({ session, origin: { channel, account }, facts: { target } }: InboxMessage, busyText: string): void {
		const { clock, limits, tell } = this.#deps;
		const now = clock.now();
		for (const [label, at] of this.#busyTold) if (now - at >= limits.busyReplyMs) this.#busyTold.delete(label);
		if (busyText === "" || !target || this.#busyTold.has(session)) return;
		this.#busyTold.set(session, now);
		tell({ channel, account, target }, busyText);
	}
}
