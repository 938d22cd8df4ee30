/** Connectors: made and changed by the owner. An application uses those that are there for it without seeing them. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ScenarioType } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { ConnectorSchema, type RuntimeConnectorService } from "@nexus-stream/client/gen/nexus/runtime/v1/connector_pb";
import { NexusError } from "@nexus-stream/protocol";
import type { ConnectorInfo, ScenarioKind } from "../../services/connectors/port.ts";
import { type Principal, requireOwner } from "../../services/kit/principal.ts";
import { principalOf, type RpcDeps } from "./rpc.ts";
import { reasonCodeOf, SCENARIO_TYPE } from "./scenario-codec.ts";

export const connectorMethods = ({ services }: RpcDeps): Partial<ServiceImpl<typeof RuntimeConnectorService>> => ({
	async createConnector(request, context) {
		const principal = ownerOf(context);
		const connector = await services.connectors.create(
			{
				id: request.connectorId,
				providerType: request.providerType,
				appId: request.appId || undefined,
				endpoint: request.endpoint || undefined,
				apiKey: request.apiKey || undefined,
				defaultModel: request.defaultModelId || undefined,
				models: request.modelIds,
				kinds: request.scenarioTypes.map(kindOf),
			},
			principal,
		);
		return { connector: messageOf(connector) };
	},
	async getConnector({ connectorId }, context) {
		const found = await services.connectors.find(connectorId, ownerOf(context));
		if (found) return { connector: messageOf(found) };
		throw new NexusError("not_found", `there is no connector ${connectorId}`, { reason: "AI_CONNECTOR_NOT_FOUND" });
	},
	async listConnectors(_, context) {
		return { connectors: (await services.connectors.list(ownerOf(context))).map(messageOf) };
	},
	async updateConnector(request, context) {
		const principal = ownerOf(context);
		const { connectorId, endpoint, apiKey, enabled, defaultModelId, modelIds, clearModelIds } = request;
		if (clearModelIds && modelIds.length > 0) throw new NexusError("invalid", "name model_ids or clear them, not both");
		const change = {
			endpoint,
			apiKey,
			enabled,
			defaultModel: defaultModelId,
			models: clearModelIds || modelIds.length > 0 ? modelIds : undefined,
		};
		return { connector: messageOf(await services.connectors.update(connectorId, change, principal)) };
	},
	async deleteConnector({ connectorId }, context) {
		await services.connectors.remove(connectorId, ownerOf(context));
		return {};
	},
	async testConnector({ connectorId }, context) {
		const { ok, reason, message, models } = await services.connectors.test(connectorId, ownerOf(context));
		return { ok, message, modelIds: [...models], reasonCode: reasonCodeOf(reason ?? "UNSPECIFIED") };
	},
});

function ownerOf(context: HandlerContext): Principal {
	const principal = principalOf(context);
	requireOwner(principal);
	return principal;
}

function kindOf(type: ScenarioType): ScenarioKind {
	const found = Object.entries(SCENARIO_TYPE).find(([, each]) => each === type);
	if (found) return found[0] as ScenarioKind;
	throw new NexusError("invalid", `there is no scenario type ${type}`);
}

const messageOf = (info: ConnectorInfo) =>
	create(ConnectorSchema, {
		connectorId: info.id,
		appId: info.appId ?? "",
		providerType: info.providerType,
		endpoint: info.endpoint ?? "",
		keyHint: info.keyHint ?? "",
		enabled: info.enabled,
		defaultModelId: info.defaultModel ?? "",
		modelIds: [...info.models],
		scenarioTypes: info.kinds.map((kind) => SCENARIO_TYPE[kind]),
		createdAt: timestampFromMs(info.createdAt),
		updatedAt: timestampFromMs(info.updatedAt),
		builtIn: info.builtIn,
	});
