/** Jobs and artifacts of a daemon: made from its configuration. */

import { join } from "node:path";
import type { Bus } from "../bus/bus.ts";
import type { Ledger } from "../ledger/ledger.ts";
import {
	type Artifacts,
	type Audit,
	type Connectors,
	createArtifacts,
	createJobs,
	type Jobs,
	type Scenarios,
} from "../services/services.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { NexusConfig } from "./config.ts";

/** Where the files of artifacts are. */
const artifactsDir = (dataDir: string): string => join(dataDir, "artifacts");

export interface JobParts {
	bus: Bus;
	ledger: Ledger;
	config: NexusConfig;
	clock: Clock;
	log: Log;
	connectors: Connectors;
	scenarios: Scenarios;
	audit: Audit;
}

export function openJobs(parts: JobParts): { artifacts: Artifacts; jobs: Jobs } {
	const { config, bus, ledger, clock, log, connectors, scenarios, audit } = parts;
	const stored = { bus, ledger, clock, log };
	const artifacts = createArtifacts({
		...stored,
		dir: artifactsDir(config.data),
		...(config.artifacts && { limits: config.artifacts }),
	});
	const jobs = createJobs({
		...stored,
		connectors,
		scenarios,
		artifacts,
		audit,
		...(config.jobs && { limits: config.jobs }),
	});
	return { artifacts, jobs };
}
