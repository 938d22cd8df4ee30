/** The connectors of a realtime session: found for the caller, checked for what they can do, opened when they are used. */

import { NexusError } from "@nexus-stream/protocol";
import type { ConnectorInfo, Connectors, Provider, ScenarioKind } from "../connectors/port.ts";
import { defaultModelOf } from "../connectors/provider-types.ts";
import type { Principal } from "../kit/principal.ts";

export interface ConnectorSelection {
	connectorId: string;
	model?: string;
	/** The application that the session is for. */
	appId: string;
}

/** Rejects as a scenario with this connector would be refused. */
export async function findConnector(
	connectors: Pick<Connectors, "find">,
	{ connectorId, model = "", appId }: ConnectorSelection,
	kind: ScenarioKind,
	principal: Principal,
): Promise<{ connector: ConnectorInfo; model: string }> {
	const connector = await connectors.find(connectorId, principal);
	if (!connector || (connector.appId !== undefined && connector.appId !== appId))
		throw new NexusError("not_found", `there is no connector ${connectorId}`, { reason: "AI_CONNECTOR_NOT_FOUND" });
	if (!connector.enabled)
		throw new NexusError("precondition", `the connector ${connectorId} is disabled: enable it first`, {
			reason: "AI_CONNECTOR_DISABLED",
		});
	if (!connector.kinds.includes(kind))
		throw new NexusError("precondition", `the connector ${connectorId} cannot do this (${kind}): name another one`, {
			reason: "AI_SCENARIO_UNSUPPORTED",
		});
	const { models } = connector;
	if (model !== "" && models.length > 0 && !models.includes(model))
		throw new NexusError("not_found", `the connector ${connectorId} has no model ${model}`, {
			reason: "AI_MODEL_NOT_FOUND",
		});
	return { connector, model: model === "" ? (defaultModelOf(connector, kind) ?? "") : model };
}

/** Once more for every use: a connector may have been changed or removed meanwhile. The call's outcome counts for its health. */
export async function useConnector<T>(
	connectors: Pick<Connectors, "find" | "open" | "report">,
	wanted: ConnectorSelection,
	kind: ScenarioKind,
	principal: Principal,
	call: (provider: Provider, model: string) => Promise<T>,
): Promise<T> {
	const { connector, model } = await findConnector(connectors, wanted, kind, principal);
	const provider = await connectors.open(connector);
	try {
		const answer = await call(provider, model);
		connectors.report(connector.id, { ok: true });
		return answer;
	} catch (cause) {
		if (cause instanceof NexusError && cause.code !== "aborted")
			connectors.report(connector.id, { ok: false, error: cause });
		throw cause;
	}
}
