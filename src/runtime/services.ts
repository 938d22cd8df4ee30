/** The services of the runtime contract: made here, each from what it needs, and stopped together with the daemon. */

import type { Broker } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Engine } from "../engine/engine.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { createAudit, createScenarios, type Services } from "../services/services.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { NexusConfig } from "./config.ts";
import { openConnectors } from "./connectors.ts";
import { userTokensOf } from "./user-tokens.ts";

export interface ServiceParts {
	bus: Bus;
	ledger: Ledger;
	broker: Broker;
	engine: Engine;
	config: NexusConfig;
	clock: Clock;
	log: Log;
}

export interface RunningServices {
	services: Services;
	/** Before the ports open: settles or goes on with what a dead daemon left. */
	recover(): Promise<void>;
	/** Refuses new work at once, waits for what is under way, and aborts what is left at the deadline. */
	drain(deadlineMs: number): Promise<void>;
	/** Lets go of everything: nobody reads any more. */
	close(): Promise<void>;
}

export function createServices(parts: ServiceParts): RunningServices {
	const { bus, ledger, config, clock, log } = parts;
	const connectors = openConnectors(parts);
	const scenarios = createScenarios({
		bus,
		ledger,
		connectors,
		clock,
		log,
		audit: createAudit(clock),
		verifyUser: userTokensOf(config, clock),
		abortGraceMs: config.broker.abortGraceMs,
	});
	return {
		// A service that is not there yet has no method that could ask for it.
		services: { connectors, scenarios } as Services,
		async recover() {
			const ended = await scenarios.recover();
			if (ended > 0) log.warn({ ended }, "ended model calls that an earlier process left behind");
		},
		async drain(deadlineMs) {
			await scenarios.drain(deadlineMs);
		},
		async close() {
			connectors.close();
		},
	};
}
