/** Connectors: made and changed by the owner. An application uses those that are there for it without seeing them. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ScenarioType } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import {
	type AIProviderHealthSchema,
	ProviderState,
	type RuntimeAuditService,
} from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import type { ConnectorSchema, RuntimeConnectorService } from "@nexus-stream/client/gen/nexus/runtime/v1/connector_pb";
import { NexusError } from "@nexus-stream/protocol";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { inCapitals, reasonCodeOf, SCENARIO_TYPE, timeOf } from "../kit/codec.ts";
import { requireOwner } from "../kit/principal.ts";
import type { ConnectorInfo, ConnectorService, ProviderHealth, ScenarioKind } from "./port.ts";
import { missing } from "./store.ts";

export interface ConnectorRpcParts {
	connectors: ConnectorService;
}

export const connectorMethods = ({
	connectors,
}: ConnectorRpcParts): Partial<ServiceImpl<typeof RuntimeConnectorService>> => ({
	async createConnector(request, context) {
		const principal = requireOwner(principalOf(context));
		const connector = await connectors.create(
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
		const found = await connectors.find(connectorId, requireOwner(principalOf(context)));
		if (found) return { connector: messageOf(found) };
		throw missing(connectorId);
	},
	async listConnectors(_, context) {
		return { connectors: (await connectors.list(requireOwner(principalOf(context)))).map(messageOf) };
	},
	async updateConnector(request, context) {
		const principal = requireOwner(principalOf(context));
		const { connectorId, endpoint, apiKey, enabled, defaultModelId: defaultModel, modelIds, clearModelIds } = request;
		if (clearModelIds && modelIds.length > 0) throw new NexusError("invalid", "name model_ids or clear them, not both");
		const models = clearModelIds || modelIds.length > 0 ? modelIds : undefined;
		const change = { endpoint, apiKey, enabled, defaultModel, models };
		return { connector: messageOf(await connectors.update(connectorId, change, principal)) };
	},
	async deleteConnector({ connectorId }, context) {
		await connectors.remove(connectorId, requireOwner(principalOf(context)));
		return {};
	},
	async testConnector({ connectorId }, context) {
		const { ok, reason, message, models } = await connectors.test(connectorId, requireOwner(principalOf(context)));
		return { ok, message, modelIds: [...models], reasonCode: reasonCodeOf(reason ?? "UNSPECIFIED") };
	},
});

function kindOf(type: ScenarioType): ScenarioKind {
	const found = Object.entries(SCENARIO_TYPE).find(([, each]) => each === type);
	if (found) return found[0] as ScenarioKind;
	throw new NexusError("invalid", `there is no scenario type ${type}`);
}

const messageOf = (info: ConnectorInfo): MessageInitShape<typeof ConnectorSchema> => ({
	...info,
	connectorId: info.id,
	defaultModelId: info.defaultModel,
	modelIds: [...info.models],
	scenarioTypes: info.kinds.map((kind) => SCENARIO_TYPE[kind]),
	createdAt: timestampFromMs(info.createdAt),
	updatedAt: timestampFromMs(info.updatedAt),
});

/** The health of the model providers is a state feed, from memory (Z2). */
export const providerMethods = ({
	connectors,
}: ConnectorRpcParts): Partial<ServiceImpl<typeof RuntimeAuditService>> => ({
	listAIProviderHealth(_, context) {
		requireOwner(principalOf(context));
		return { providers: connectors.health.list().map(healthMessage) };
	},
	subscribeAIProviderHealthEvents(_, context) {
		requireOwner(principalOf(context));
		const { health } = connectors;
		return feedStream(context, {
			current: () => health.list(),
			subscribe: (listener) => health.subscribe(listener),
			key: ({ name }) => name,
			message: (state, sequence) => ({ sequence, provider: healthMessage(state) }),
		});
	},
});

const healthMessage = (health: ProviderHealth): MessageInitShape<typeof AIProviderHealthSchema> => ({
	...health,
	providerName: health.name,
	state: ProviderState[inCapitals(health.state)],
	lastChangedAt: timestampFromMs(health.changedAt),
	lastCheckedAt: timeOf(health.checkedAt),
});
