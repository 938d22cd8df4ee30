/** What a delivery that is under way needs, whichever path it takes. */

import type { AdapterInfo, DeliveryOptions, Question, Target, WireAttachment } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { ChannelAccount } from "../accounts/account.ts";
import type { OutboundLimits } from "../limits.ts";
import type { LiveDelivery } from "./live-delivery.ts";

export interface DeliveryContext {
	live: LiveDelivery;
	target: Target;
	account: ChannelAccount;
	info: AdapterInfo;
	bus: Bus;
	limits: OutboundLimits;
	clock: Clock;
	random: () => number;
	log: Log;
	/** This process stops, or another daemon has taken the delivery over. */
	signal: AbortSignal;
	/** For the adapter. */
	options: DeliveryOptions;
	/** The message has these buttons. */
	question?: Question;
	/** I8. */
	reasoning: boolean;
	/** Images, cards and the like are sent too. */
	parts: boolean;
	/** Files of the lines that this process has intended to send, by their nonce. */
	files: Map<string, readonly WireAttachment[]>;
	/** The answer ended with an error. */
	isFailed?: boolean;
	/** Why the stored answer cannot be delivered as a whole. */
	damage?: string;
}

/** How a path ended. */
export type DeliveryOutcome =
	| { state: "complete" }
	| { state: "failed"; error: string }
	/** Nobody can tell what the platform shows. */
	| { state: "unknown"; error: string }
	/** What is whole of the stored answer is out; the rest is damaged. */
	| { state: "damaged"; error: string }
	/** What is still owed is to be sent. */
	| { state: "degraded"; error: string }
	/** This process stops working on it; the next one, or another daemon, goes on. */
	| { state: "left" };

export const factsOf = ({ row }: Pick<LiveDelivery, "row">): object => ({
	delivery: row.id,
	runId: row.runId,
	channel: row.channel,
	account: row.account,
	to: row.target.to,
});
