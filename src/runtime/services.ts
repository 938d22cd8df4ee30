/** The services of the runtime contract: made here, each from what it needs, and stopped together with the daemon. */

import type { Broker } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Engine } from "../engine/engine.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { createAudit, createAuditLog, noticeLogs, type Services } from "../services/services.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { NexusConfig } from "./config.ts";
import { openConnectors } from "./connectors.ts";

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
	const { bus, ledger, clock, log } = parts;
	const audit = createAudit(clock);
	const notices = noticeLogs({ bus, ledger });
	const connectors = openConnectors(parts);
	const services: Partial<Services> = {
		audit: createAuditLog({ bus, ledger, notices, audit, clock, log }),
		notices,
		connectors,
	};
	return {
		// A service that is not there yet has no method that could ask for it.
		services: services as Services,
		async recover() {},
		async drain() {},
		async close() {
			connectors.close();
		},
	};
}
