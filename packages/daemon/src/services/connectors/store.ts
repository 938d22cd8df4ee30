/** Connectors as they are stored: made, changed and removed by the owner, each change with its line in the audit log. */

import type { Guard } from "@nexus-stream/adapter/net/address-guard";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type { Audit } from "../audit/port.ts";
import { checkedAppId, type Principal, requireOwner } from "../kit/principal.ts";
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
import type { ConnectorChange, ConnectorInfo, NewConnector, ScenarioKind } from "./port.ts";
import { endpointOf, providerType } from "./provider-types.ts";
import { type ConnectorRows, connectorWrites, type StoredConnector } from "./rows.ts";

export interface StoreDeps {
	bus: Pick<Bus, "write">;
	rows: { connectors: ConnectorRows };
	secret: SecretKey;
	/** Addresses of one's own that connectors may have. */
	rules: Guard;
	audit: Audit;
	clock: Clock;
}

export const bindingOf = ({ id, appId, providerType, endpoint }: StoredConnector): KeyBinding => ({
	id,
	appId,
	providerType,
	endpoint: endpointOf({ providerType, endpoint }),
});

export const missing = (id: string): NexusError =>
	new NexusError("not_found", `there is no connector ${id}`, { reason: "AI_CONNECTOR_NOT_FOUND" });

export const isFor = ({ owner, appId }: Principal, connector: StoredConnector): boolean =>
	owner || connector.appId === undefined || connector.appId === appId;

export function infoOf({ sealedKey: _, revision: __, kinds, ...shown }: StoredConnector): ConnectorInfo {
	return { ...shown, kinds: kinds as ScenarioKind[], builtIn: false };
}

/** Every change is the owner's. */
export class ConnectorStore {
	readonly #deps: StoreDeps;

	constructor(deps: StoreDeps) {
		this.#deps = deps;
	}

	async add(given: NewConnector, by: Principal): Promise<StoredConnector> {
		requireOwner(by);
		const draft = newDraft(given, this.#deps.rules, this.#deps.clock.now());
		const connector = { ...draft, ...this.#sealed(draft, given.apiKey) };
		await this.#write(connectorWrites.add(connector, CONNECTOR_LIMITS.connectorsMax), "created", connector, by);
		return connector;
	}

	async change(id: string, change: ConnectorChange, by: Principal): Promise<StoredConnector> {
		const old = await this.#stored(id, by);
		const draft: StoredConnector = {
			...old,
			endpoint: changedEndpoint(old, change, this.#deps.rules),
			// An empty one takes the default away.
			defaultModel: (change.defaultModel ?? old.defaultModel) || undefined,
			enabled: change.enabled ?? old.enabled,
			models: change.models ?? old.models,
			updatedAt: this.#deps.clock.now(),
			revision: old.revision + 1,
		};
		checkModels(draft.models, draft.defaultModel);
		if (change.apiKey === undefined && old.sealedKey !== undefined && endpointOf(draft) !== endpointOf(old))
			throw new NexusError("invalid", "another endpoint needs the key again: it was given for the old one");
		const connector = { ...draft, ...this.#sealed(draft, change.apiKey) };
		await this.#write(connectorWrites.replace(connector), "changed", connector, by);
		return connector;
	}

	async remove(id: string, by: Principal): Promise<void> {
		await this.#write(connectorWrites.remove(id), "removed", await this.#stored(id, by), by);
	}

	async #stored(id: string, by: Principal): Promise<StoredConnector> {
		requireOwner(by);
		if (id === DEFAULT_ID)
			throw new NexusError("precondition", "`default` is the daemon's own connector: change it in nexus.yaml");
		const found = await this.#deps.rows.connectors.get(id);
		if (!found) throw missing(id);
		return found;
	}

	/** Undefined: the key stays; empty: it goes. */
	#sealed(draft: StoredConnector, apiKey: string | undefined): Pick<StoredConnector, "sealedKey" | "keyHint"> {
		if (apiKey === undefined) return {};
		if (apiKey === "") return { sealedKey: undefined, keyHint: undefined };
		if (!checkType(draft.providerType).key)
			throw new NexusError("invalid", `a connector of the type ${draft.providerType} takes no key`);
		checkKey(apiKey);
		return { sealedKey: sealKey(apiKey, bindingOf(draft), this.#deps.secret.make()), keyHint: keyHint(apiKey) };
	}

	async #write(write: Write, operation: string, connector: StoredConnector, by: Principal): Promise<void> {
		const { id, appId, providerType } = connector;
		const event = this.#deps.audit({
			domain: "connectors",
			operation,
			caller: by.address,
			appId: appId || undefined,
			payload: { connector_id: id, provider_type: providerType },
		});
		await this.#deps.bus.write([write, event]);
	}
}

function newDraft(given: NewConnector, rules: Guard, now: number): StoredConnector {
	const { id, appId, providerType, models = [], defaultModel } = given;
	checkId(id);
	if (appId !== undefined) checkedAppId(appId);
	const type = checkType(providerType);
	checkModels(models, defaultModel);
	const endpoint = given.endpoint ? checkedEndpoint(given.endpoint, providerType, rules) : undefined;
	if (endpoint !== undefined && type.key === undefined)
		throw new NexusError("invalid", `a connector of the type ${providerType} has no endpoint`);
	if (endpoint === undefined && type.endpoint === undefined && type.key !== undefined) throw endpointless(providerType);
	return {
		id,
		providerType,
		enabled: true,
		appId,
		endpoint,
		defaultModel,
		models,
		kinds: checkedKinds(given, type),
		createdAt: now,
		updatedAt: now,
		revision: 1,
	};
}

const endpointless = (providerType: string): NexusError =>
	new NexusError("invalid", `a connector of the type ${providerType} needs an endpoint`);

/** An empty one means the provider's usual. */
function changedEndpoint(old: StoredConnector, { endpoint }: ConnectorChange, rules: Guard): string | undefined {
	if (endpoint === undefined) return old.endpoint;
	if (endpoint !== "") return checkedEndpoint(endpoint, old.providerType, rules);
	if (providerType(old.providerType)?.endpoint === undefined) throw endpointless(old.providerType);
	return undefined;
}
