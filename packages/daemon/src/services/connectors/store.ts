/** Connectors as they are stored: made, changed and removed by the owner, each change with its line in the audit log. */

import type { Guard } from "@nexus-stream/adapter/net/address-guard";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type { Audit } from "../audit/port.ts";
import { checkedAppId, type Principal } from "../kit/principal.ts";
import {
	CONNECTOR_LIMITS,
	checkedEndpoint,
	checkedKinds,
	checkId,
	checkKey,
	checkModels,
	checkType,
	DEFAULT_ID,
} from "./checks.ts";
import { type KeyBinding, keyHint, type SecretKey, sealKey } from "./keys.ts";
import type { ConnectorChange, ConnectorInfo, NewConnector } from "./port.ts";
import { providerType } from "./provider-types.ts";
import type { ConnectorRows } from "./rows.ts";
import { connectorWrites, type StoredConnector } from "./rows.ts";

export interface StoreDeps {
	bus: Pick<Bus, "write">;
	rows: { connectors: ConnectorRows };
	secret: SecretKey;
	/** Addresses of one's own that connectors may have. */
	rules?: Guard | undefined;
	audit?: Audit | undefined;
	clock: Clock;
}

/** Its own address, or its type's usual one. */
export const endpointOf = ({ providerType: type, endpoint }: Pick<ConnectorInfo, "providerType" | "endpoint">) =>
	endpoint ?? providerType(type)?.endpoint;

export const bindingOf = ({
	id,
	appId,
	providerType,
	endpoint,
}: Omit<KeyBinding, "endpoint"> & { endpoint?: string }) => ({
	id,
	appId,
	providerType,
	endpoint: endpointOf({ providerType, endpoint }),
});

export const missing = (id: string): NexusError =>
	new NexusError("not_found", `there is no connector ${id}`, { reason: "AI_CONNECTOR_NOT_FOUND" });

type ConnectorDraft = Omit<StoredConnector, "sealedKey" | "keyHint">;

export function connectorStore({ bus, rows, secret, rules = {}, audit, clock }: StoreDeps) {
	const told = (operation: string, { id, appId, providerType }: StoredConnector, by: Principal): Write[] =>
		audit
			? [
					audit({
						domain: "connectors",
						operation,
						caller: by.address,
						appId: appId || undefined,
						payload: { connector_id: id, provider_type: providerType },
					}),
				]
			: [];
	const sealed = (draft: ConnectorDraft, apiKey: string) => {
		if (!checkType(draft.providerType).key)
			throw new NexusError("invalid", `a connector of the type ${draft.providerType} takes no key`);
		checkKey(apiKey);
		return { sealedKey: sealKey(apiKey, bindingOf(draft), secret.make()), keyHint: keyHint(apiKey) };
	};
	const stored = async (id: string): Promise<StoredConnector> => {
		if (id === DEFAULT_ID)
			throw new NexusError("precondition", "`default` is the daemon's own connector: change it in nexus.yaml");
		const found = await rows.connectors.get(id);
		if (!found) throw missing(id);
		return found;
	};
	return {
		async add(given: NewConnector, by: Principal): Promise<StoredConnector> {
			checkId(given.id);
			if (given.appId !== undefined) checkedAppId(given.appId);
			const type = checkType(given.providerType);
			const { models = [], defaultModel } = given;
			checkModels(models, defaultModel);
			const endpoint = given.endpoint ? checkedEndpoint(given.endpoint, given.providerType, rules) : undefined;
			if (endpoint !== undefined && type.key === undefined)
				throw new NexusError("invalid", `a connector of the type ${given.providerType} has no endpoint`);
			if (endpoint === undefined && type.endpoint === undefined && type.key !== undefined)
				throw new NexusError("invalid", `a connector of the type ${given.providerType} needs an endpoint`);
			const now = clock.now();
			const draft: ConnectorDraft = {
				id: given.id,
				providerType: given.providerType,
				enabled: true,
				appId: given.appId,
				endpoint,
				defaultModel,
				models,
				kinds: checkedKinds(given, type),
				createdAt: now,
				updatedAt: now,
				revision: 1,
			};
			const connector = { ...draft, ...(given.apiKey && sealed(draft, given.apiKey)) };
			const add = connectorWrites.add(connector, CONNECTOR_LIMITS.connectorsMax);
			await bus.write([add, ...told("created", connector, by)]);
			return connector;
		},
		async change(id: string, change: ConnectorChange, by: Principal): Promise<StoredConnector> {
			const old = await stored(id);
			const { sealedKey, keyHint: hint, endpoint: _, defaultModel: __, ...before } = old;
			const draft: ConnectorDraft = {
				...before,
				...changedEndpoint(old, change, rules),
				...changedModel(old, change),
				enabled: change.enabled ?? old.enabled,
				models: change.models ?? old.models,
				updatedAt: clock.now(),
				revision: old.revision + 1,
			};
			checkModels(draft.models, draft.defaultModel);
			const kept =
				sealedKey !== undefined && hint !== undefined && change.apiKey !== "" ? { sealedKey, keyHint: hint } : {};
			if (change.apiKey === undefined && "sealedKey" in kept && endpointOf(draft) !== endpointOf(old))
				throw new NexusError("invalid", "another endpoint needs the key again: it was given for the old one");
			const connector = { ...draft, ...(change.apiKey ? sealed(draft, change.apiKey) : kept) };
			await bus.write([connectorWrites.replace(connector), ...told("changed", connector, by)]);
			return connector;
		},
		async remove(id: string, by: Principal): Promise<void> {
			const connector = await stored(id);
			await bus.write([connectorWrites.remove(id), ...told("removed", connector, by)]);
		},
	};
}

/** An empty one means the provider's usual. */
function changedEndpoint(old: StoredConnector, { endpoint }: ConnectorChange, rules: Guard): { endpoint?: string } {
	if (endpoint === undefined) return old.endpoint === undefined ? {} : { endpoint: old.endpoint };
	if (endpoint !== "") return { endpoint: checkedEndpoint(endpoint, old.providerType, rules) };
	if (providerType(old.providerType)?.endpoint === undefined)
		throw new NexusError("invalid", `a connector of the type ${old.providerType} needs an endpoint`);
	return {};
}

function changedModel(old: StoredConnector, { defaultModel }: ConnectorChange): { defaultModel?: string } {
	const model = defaultModel ?? old.defaultModel;
	return model === undefined || model === "" ? {} : { defaultModel: model };
}
