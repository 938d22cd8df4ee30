/** The handlers about connectors, and how one is told as JSON. */

import { type ConnectorJson, NexusError } from "@nexus-stream/protocol";
import type { ConnectorInfo, Connectors } from "../../../services/connectors/port.ts";
import { type Principal, requireOwner } from "../../../services/kit/principal.ts";
import { defined } from "../../../std/defined.ts";
import { type Caller, principalOfCaller } from "../../http/gate.ts";
import type { Handlers } from "../../http/handler.ts";
import type { EdgeDeps } from "../../port.ts";

const missing = (id: string) =>
	new NexusError("not_found", `there is no connector ${id}`, { reason: "AI_CONNECTOR_NOT_FOUND" });

function ownerOf(caller: Caller): Principal {
	const principal = principalOfCaller(caller);
	requireOwner(principal);
	return principal;
}

export function connectorHandlers({ services }: EdgeDeps) {
	const connectors = (): Connectors => {
		if (!services) throw new NexusError("unavailable", "this daemon has no connectors");
		return services.connectors;
	};
	return {
		async listConnectors(_, { caller }) {
			return { connectors: (await connectors().list(ownerOf(caller))).map(connectorView) };
		},
		async createConnector({ body }, { caller }) {
			const { id, app_id: appId, provider_type: providerType, api_key: apiKey, default_model: defaultModel } = body;
			const { endpoint, models, kinds } = body;
			const given = { id, appId, providerType, endpoint, apiKey, defaultModel, models, kinds };
			return connectorView(await connectors().create(defined(given), ownerOf(caller)));
		},
		async getConnector({ params: { connector } }, { caller }) {
			const found = await connectors().find(connector, ownerOf(caller));
			if (!found) throw missing(connector);
			return connectorView(found);
		},
		async updateConnector({ params: { connector }, body }, { caller }) {
			const { endpoint, api_key: apiKey, enabled, default_model: defaultModel, models } = body;
			const change = defined({ endpoint, apiKey, enabled, defaultModel, models });
			return connectorView(await connectors().update(connector, change, ownerOf(caller)));
		},
		async deleteConnector({ params: { connector } }, { caller }) {
			await connectors().remove(connector, ownerOf(caller));
			return { removed: true };
		},
		async testConnector({ params: { connector } }, { caller }) {
			const { ok, message, models, reason } = await connectors().test(connector, ownerOf(caller));
			return defined({ ok, message, models: [...models], reason });
		},
	} satisfies Partial<Handlers>;
}

const connectorView = ({ models, kinds, ...info }: ConnectorInfo): ConnectorJson =>
	defined({
		id: info.id,
		app_id: info.appId,
		provider_type: info.providerType,
		endpoint: info.endpoint,
		key_hint: info.keyHint,
		enabled: info.enabled,
		default_model: info.defaultModel,
		models: [...models],
		kinds: [...kinds],
		created_at: info.createdAt,
		updated_at: info.updatedAt,
		built_in: info.builtIn,
	});
