/** Dependencies of every run of a Broker. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Approvals } from "../approvals.ts";
import type { History } from "../history.ts";
import type { BrokerLimits } from "../limits.ts";
import type { RunObserver, Saved } from "../port.ts";
import type { Ending } from "../settle/ending.ts";
import type { SettleOrphan } from "./run-recovery.ts";

export interface RunDeps {
	bus: Bus;
	ledger: Ledger;
	engine: Engine;
	history: History;
	approvals: Approvals;
	/** The daemon stops: no person is asked any more. */
	stopping(): boolean;
	/** Settles a run that the store gave up. */
	settleLate(runId: string, ending: Ending, settle: SettleOrphan): Promise<Saved>;
	limits: BrokerLimits;
	/** The execution log includes arguments, results and prompts. */
	withArguments: boolean;
	observer?: RunObserver | undefined;
	clock: Clock;
	log: Log;
}
