/** A job that waited is checked again when it runs: its connector may be gone, switched off or moved, and its address may have changed. */

import { NexusError } from "@nexus-stream/protocol";
import type { Connectors } from "../connectors/port.ts";
import type { AdmittedScenario } from "../scenarios/port.ts";
import { DAEMON } from "./attempt.ts";
import type { JobScenario } from "./snapshot.ts";

export type Readmit = (scenario: JobScenario) => Promise<AdmittedScenario>;

export const readmission =
	(connectors: Pick<Connectors, "find" | "checkEndpoint" | "endpointOf">): Readmit =>
	async ({ connector: { id, appId }, ...scenario }) => {
		const connector = await connectors.find(id, DAEMON);
		// A connector of the same name that belongs to another application is not the one that was admitted.
		if (!connector || connector.appId !== appId)
			throw new NexusError("not_found", `there is no connector ${id} any more`, { reason: "AI_CONNECTOR_NOT_FOUND" });
		if (!connector.enabled)
			throw new NexusError("precondition", `the connector ${id} is disabled`, { reason: "AI_CONNECTOR_DISABLED" });
		const endpoint = connectors.endpointOf(connector);
		if (endpoint !== undefined) await connectors.checkEndpoint(endpoint);
		return { ...scenario, source: { connector } };
	};
