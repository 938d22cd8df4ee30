/** The context of a running delivery, for streams and for blocks. */

import type { AdapterInfo, DeliveryOptions, Question, Target, WireAttachment } from "@nexus-stream/adapter/port";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { ChannelAccount } from "../accounts/account.ts";
import type { OutboundLimits } from "../limits.ts";
import type { LiveDelivery } from "./live-delivery.ts";

/** The means of every delivery. */
export interface DeliveryMeans {
	bus: Bus;
	limits: OutboundLimits;
	clock: Clock;
	random: () => number;
	log: Log;
	/** Aborts when this process stops. */
	signal: AbortSignal;
}

/** Its signal also aborts when another daemon has taken the delivery over. */
export interface DeliveryContext extends DeliveryMeans {
	live: LiveDelivery;
	target: Target;
	account: ChannelAccount;
	info: AdapterInfo;
	/** Options sent to the adapter. */
	options: DeliveryOptions;
	/** The message has these buttons. */
	question?: Question;
	/** Reasoning is shown (I8). */
	reasoning: boolean;
	/** Images, cards and the like are sent as well. */
	parts: boolean;
	/** Files of the lines that this process is about to send, by nonce. */
	files: Map<string, readonly WireAttachment[]>;
	/** The answer ended with an error. */
	isFailed?: boolean;
	/** Why the stored answer cannot be delivered completely. */
	damage?: string;
}

/** How a stream or a sequence of blocks ended. */
export type DeliveryOutcome =
	| { state: "complete" }
	| { state: "failed"; error: string }
	/** It is unknown what the platform shows. */
	| { state: "unknown"; error: string }
	/** The intact part of the stored answer was sent; the rest is damaged. */
	| { state: "damaged"; error: string }
	/** The stream failed; the remainder is to be sent in blocks. */
	| { state: "degraded"; error: string }
	/** This process stops working on it; the next one, or another daemon, continues. */
	| { state: "left" };

export const factsOf = ({ row }: Pick<LiveDelivery, "row">): object => ({
	delivery: row.id,
	runId: row.runId,
	channel: row.channel,
	account: row.account,
	to: row.target.to,
});
