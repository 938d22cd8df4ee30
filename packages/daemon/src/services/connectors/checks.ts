/** Checks a connector's names, address, key and models, and says what is wrong with them. */

import { type Guard, urlProblem } from "@nexus-stream/adapter/net/address-guard";
import { NexusError } from "@nexus-stream/protocol";
import type { InlineCredential, NewConnector, ScenarioKind } from "./port.ts";
import { ALL_KINDS, ANTHROPIC, type ProviderType, providerType, providerTypeNames } from "./provider-types.ts";

export const DEFAULT_ID = "default";

export const CONNECTOR_LIMITS = {
	connectorsMax: 1000,
	idCharsMax: 64,
	keyCharsMax: 4096,
	endpointCharsMax: 2048,
	modelsMax: 200,
	modelCharsMax: 200,
} as const;

const ID = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
const KEY = /^[\x21-\x7e]+$/;

const wrong = (message: string): NexusError => new NexusError("invalid", message);

export function checkId(id: string): void {
	if (!ID.test(id))
		throw wrong(`a connector's id has up to ${CONNECTOR_LIMITS.idCharsMax} letters, digits and . _ - between them`);
	if (id === DEFAULT_ID) throw new NexusError("conflict", "`default` is the daemon's own connector: choose another id");
}

export function checkType(name: string): ProviderType {
	const type = providerType(name);
	if (!type)
		throw wrong(`there is no provider type ${JSON.stringify(name)}; there are ${providerTypeNames.join(", ")}`);
	return type;
}

function endpointUrl(text: string): URL {
	const url = text.length <= CONNECTOR_LIMITS.endpointCharsMax ? URL.parse(text) : null;
	if (url === null) throw wrong("the endpoint is not an address: write it like https://models.example/v1");
	if (url.search !== "" || url.hash !== "") throw wrong("the endpoint has a ? or # in it: leave that out");
	return url;
}

/** Checks credentials in a request before their address is looked up. */
export function checkInline({ providerType, endpoint, apiKey }: InlineCredential): void {
	if (checkType(providerType).key === undefined) throw wrong(`${providerType} takes no key of a request`);
	checkKey(apiKey);
	if (endpoint !== undefined) endpointUrl(endpoint);
}

/** As it is kept. Names are resolved when it is dialled, not here. */
export function checkedEndpoint(text: string, typeName: string, rules: Guard): string {
	const url = endpointUrl(text);
	const problem = urlProblem(url, rules);
	if (problem !== undefined)
		throw new NexusError("forbidden", `the endpoint is not allowed: ${problem}`, { reason: "AI_ENDPOINT_FORBIDDEN" });
	const plain = `${url.origin}${url.pathname}`.replace(/\/+$/, "");
	// Its library adds the version itself.
	return typeName === ANTHROPIC ? plain.replace(/\/v1$/, "") : plain;
}

export function checkKey(apiKey: string): void {
	if (apiKey.length > CONNECTOR_LIMITS.keyCharsMax || !KEY.test(apiKey))
		throw wrong("a key is made of visible ASCII characters without spaces, 4096 at most");
}

export function checkModels(models: readonly string[], defaultModel: string | undefined): void {
	if (models.length > CONNECTOR_LIMITS.modelsMax)
		throw wrong(`a connector has at most ${CONNECTOR_LIMITS.modelsMax} models`);
	for (const model of defaultModel === undefined ? models : [...models, defaultModel])
		if (model === "" || model.length > CONNECTOR_LIMITS.modelCharsMax)
			throw wrong(`a model's id has 1 to ${CONNECTOR_LIMITS.modelCharsMax} characters`);
	if (defaultModel !== undefined && models.length > 0 && !models.includes(defaultModel))
		throw wrong(`the default model ${defaultModel} is not among the connector's models`);
}

export function checkedKinds({ kinds = [], providerType: name }: NewConnector, type: ProviderType): ScenarioKind[] {
	const beyond = kinds.find((kind) => !type.kinds.includes(kind));
	if (beyond !== undefined) throw wrong(`${name} does not offer ${beyond}; it offers ${type.kinds.join(", ")}`);
	return ALL_KINDS.filter((kind) => (kinds.length === 0 ? type.kinds : kinds).includes(kind));
}
