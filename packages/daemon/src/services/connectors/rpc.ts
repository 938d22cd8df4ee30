/** Connectors: made and changed by the owner. An application uses those that are there for it without seeing them. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ScenarioType } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import {
	AIProviderHealthSchema,
	ProviderState,
	type RuntimeAuditService,
	SubscribeAIProviderHealthEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import { ConnectorSchema, type RuntimeConnectorService } from "@nexus-stream/client/gen/nexus/runtime/v1/connector_pb";
import { NexusError } from "@nexus-stream/protocol";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { reasonCodeOf, SCENARIO_TYPE } from "../kit/codec.ts";
import { type Principal, requireOwner } from "../kit/principal.ts";
import type { ConnectorInfo, ConnectorService, ProviderHealth, ScenarioKind } from "./port.ts";

export interface ConnectorRpcParts {
	connectors: ConnectorService;
}

export const connectorMethods = ({
	connectors,
}: ConnectorRpcParts): Partial<ServiceImpl<typeof RuntimeConnectorService>> => ({
	async createConnector(request, context) {
		const principal = ownerOf(context);
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
		const found = await connectors.find(connectorId, ownerOf(context));
		if (found) return { connector: messageOf(found) };
		throw new NexusError("not_found", `there is no connector ${connectorId}`, { reason: "AI_CONNECTOR_NOT_FOUND" });
	},
	async listConnectors(_, context) {
		return { connectors: (await connectors.list(ownerOf(context))).map(messageOf) };
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
		return { connector: messageOf(await connectors.update(connectorId, change, principal)) };
	},
	async deleteConnector({ connectorId }, context) {
		await connectors.remove(connectorId, ownerOf(context));
		return {};
	},
	async testConnector({ connectorId }, context) {
		const { ok, reason, message, models } = await connectors.test(connectorId, ownerOf(context));
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
			message: (state, sequence) =>
				create(SubscribeAIProviderHealthEventsResponseSchema, { sequence, provider: healthMessage(state) }),
		});
	},
});

const STATES: Readonly<Record<ProviderHealth["state"], ProviderState>> = {
	unknown: ProviderState.UNKNOWN,
	healthy: ProviderState.HEALTHY,
	degraded: ProviderState.DEGRADED,
	unavailable: ProviderState.UNAVAILABLE,
	unauthorized: ProviderState.UNAUTHORIZED,
	removed: ProviderState.REMOVED,
};

const healthMessage = ({ name, state, reason, consecutiveFailures, changedAt, checkedAt }: ProviderHealth) =>
	create(AIProviderHealthSchema, {
		providerName: name,
		state: STATES[state],
		reason: reason ?? "",
		consecutiveFailures,
		lastChangedAt: timestampFromMs(changedAt),
		lastCheckedAt: checkedAt === undefined ? undefined : timestampFromMs(checkedAt),
	});
