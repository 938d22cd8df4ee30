/** Everything that the inbox uses of the daemon. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Trust } from "../access/history.ts";
import type { PairingService } from "../access/pairing.ts";
import type { ChatApprovals } from "../approvals/approvals.ts";
import type { Hooks } from "../plugins/hooks.ts";
import type { DeliveryPort } from "../port.ts";
import type { InboundConfig, InboundLimits, InboxLimits } from "./config.ts";
import type { ChannelMessage, Destination } from "./message.ts";

export interface InboxDeps {
	broker: Broker;
	bus: Bus;
	ledger: Ledger;
	pairing: PairingService;
	outbound: Pick<DeliveryPort, "planDelivery" | "launch" | "settled" | "deliveries">;
	/** Whether it streams its answers, and whether messages can join its runs. */
	engine: Pick<Engine, "disableStreaming" | "injects">;
	approvals: Pick<ChatApprovals, "takeMessage" | "decides">;
	trust: Pick<Trust, "of">;
	hooks(): Hooks;
	config(): InboundConfig;
	limits: InboundLimits;
	inboxLimits: InboxLimits;
	/** Sends a note that is not the answer of a run. Never rejects. */
	tell(to: Destination, text: string): void;
	/** Called with every accepted message of a platform, once it is durable. */
	arrived?(message: ChannelMessage): void;
	clock: Clock;
	log: Log;
}
