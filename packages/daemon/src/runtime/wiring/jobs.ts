/** Jobs, artifacts and transfers of a daemon: made from its configuration. */

import { join } from "node:path";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { ChannelMessage } from "../../nex/nex.ts";
import { StoredArtifacts } from "../../services/artifacts/artifacts.ts";
import type { ArtifactService, Artifacts, Transfers } from "../../services/artifacts/port.ts";
import type { Audit } from "../../services/audit/port.ts";
import type { Connectors } from "../../services/connectors/port.ts";
import { createJobs } from "../../services/jobs/jobs.ts";
import type { Jobs } from "../../services/jobs/port.ts";
import { OWNER_APP } from "../../services/kit/principal.ts";
import type { Quota } from "../../services/kit/quota.ts";
import type { Scenarios } from "../../services/scenarios/port.ts";
import type { NexusConfig } from "../config/config.ts";
import type { ServiceRows } from "../data/tables.ts";

interface JobServiceParts {
	bus: Bus;
	rows: ServiceRows;
	config: NexusConfig;
	quota: Quota;
	clock: Clock;
	log: Log;
}

export function openArtifacts({ bus, rows, config, quota, clock, log }: JobServiceParts): ArtifactService {
	const made = { dir: join(config.data, "artifacts"), bus, rows, quota, clock, log };
	return new StoredArtifacts({ ...made, limits: config.artifacts });
}

export interface JobParts extends JobServiceParts {
	connectors: Connectors;
	scenarios: Scenarios;
	artifacts: Artifacts;
	audit: Audit;
}

export function openJobs({ config, ...parts }: JobParts): Jobs {
	const { bus, rows, quota, clock, log, connectors, scenarios, artifacts, audit } = parts;
	const made = { bus, rows, quota, clock, log, connectors, scenarios, artifacts, audit };
	return createJobs({ ...made, limits: config.jobs });
}

/** Reports the attachments of a platform's message as transfers: its adapter has fetched them. */
export function reportAttachments(
	transfers: Pick<Transfers, "report">,
	{ channel, account, message: { eventId, attachments = [] } }: ChannelMessage,
	now: number,
): void {
	for (const [n, { name, data }] of attachments.entries()) {
		const bytes = Buffer.byteLength(data, "base64");
		transfers.report({
			id: ["attachment", channel, account, eventId, n].join("/"),
			appId: OWNER_APP,
			kind: "attachment",
			state: "completed",
			name,
			transferredBytes: bytes,
			totalBytes: bytes,
			startedAt: now,
			updatedAt: now,
		});
	}
}
