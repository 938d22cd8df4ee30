/** Jobs and artifacts of a daemon: made from its configuration. */

import { join } from "node:path";
import {
	type Artifacts,
	type Audit,
	type Connectors,
	createArtifacts,
	createJobs,
	type Jobs,
	type Scenarios,
} from "../services/services.ts";
import type { ServiceParts } from "./services.ts";

/** Where the files of artifacts are. */
export const artifactsDir = (dataDir: string): string => join(dataDir, "artifacts");

export interface JobParts extends Pick<ServiceParts, "bus" | "ledger" | "config" | "clock" | "log"> {
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
