/** How the model providers are: a state feed, from memory (Z2). */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	AIProviderHealthSchema,
	ProviderState,
	type RuntimeAuditService,
	SubscribeAIProviderHealthEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import type { ProviderHealth } from "../../services/connectors/port.ts";
import { requireOwner } from "../../services/kit/principal.ts";
import { feedStream, principalOf, type RpcDeps } from "./rpc.ts";

export const providerMethods = ({ services }: RpcDeps): Partial<ServiceImpl<typeof RuntimeAuditService>> => ({
	listAIProviderHealth(_, context) {
		requireOwner(principalOf(context));
		return { providers: services.connectors.health.list().map(messageOf) };
	},
	subscribeAIProviderHealthEvents(_, context) {
		requireOwner(principalOf(context));
		const { health } = services.connectors;
		return feedStream(context, {
			current: () => health.list(),
			subscribe: (listener) => health.subscribe(listener),
			key: ({ name }) => name,
			message: (state, sequence) =>
				create(SubscribeAIProviderHealthEventsResponseSchema, { sequence, provider: messageOf(state) }),
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

const messageOf = ({ name, state, reason, consecutiveFailures, changedAt, checkedAt }: ProviderHealth) =>
	create(AIProviderHealthSchema, {
		providerName: name,
		state: STATES[state],
		reason: reason ?? "",
		consecutiveFailures,
		lastChangedAt: timestampFromMs(changedAt),
		lastCheckedAt: checkedAt === undefined ? undefined : timestampFromMs(checkedAt),
	});
