/** The services of the runtime contract: made here, each from what it needs, and stopped together with the daemon. */

import type { Broker } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Engine } from "../engine/engine.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Nex, Outbound } from "../nex/nex.ts";
import type { ReadinessJson } from "../protocol/protocol.ts";
import { createAudit, type Services } from "../services/services.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { createAppServices } from "./app-services.ts";
import type { NexusConfig } from "./config.ts";

export interface ServiceParts {
	bus: Bus;
	ledger: Ledger;
	broker: Broker;
	engine: Engine;
	config: NexusConfig;
	nex: Pick<Nex, "stats">;
	outbound: Pick<Outbound, "accounts" | "onAccounts">;
	readiness(): ReadinessJson;
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
	const services: Partial<Services> = {};
	const audit = createAudit(parts.clock);
	const apps = createAppServices({
		...parts,
		audit,
		work() {
			const { queued = 0, running = 0 } = services.jobs?.counts ?? {};
			return { queueDepth: queued, activeInferenceJobs: running };
		},
	});
	Object.assign(services, apps.services);
	return {
		// A service that is not there yet has no method that could ask for it.
		services: services as Services,
		async recover() {
			await apps.load();
		},
		async drain() {},
		async close() {
			apps.close();
		},
	};
}
