/** From a connector to its provider. Opens the stored connector at the moment of the call: it may have changed since the caller looked it up. */

import type { GuardRules } from "@nexus-stream/adapter/net/address-guard";
import { NexusError } from "@nexus-stream/protocol";
import type { BuiltIn } from "./built-in.ts";
import { checkedEndpoint, checkInline, checkType, DEFAULT_ID } from "./checks.ts";
import { demoProvider } from "./demo.ts";
import type { OpenProvider } from "./http-provider.ts";
import { openKey } from "./keys.ts";
import type { InlineCredential, ScenarioKind } from "./port.ts";
import { DEMO } from "./provider-types.ts";
import { bindingOf, endpointOf, missing, type StoreDeps } from "./store.ts";
import { type ProviderFetch, WIRE_LIMITS } from "./wire.ts";

export interface OpenerDeps extends Pick<StoreDeps, "rows" | "secret"> {
	standard: BuiltIn;
	/** The engine behind connectors of the type `demo`. */
	offline: () => Promise<Parameters<typeof demoProvider>[0]>;
	/** Behind the guard. */
	fetch: ProviderFetch;
	/** Behind the guard that an application's own addresses pass, and its rules. */
	inline(app: string | undefined): { fetch: ProviderFetch; rules: GuardRules };
	/** Wraps the fetch of an address that a provider's answer names. */
	fetched?(fetch: ProviderFetch): ProviderFetch;
}

interface HttpTarget {
	providerType: string;
	baseUrl: string;
	apiKey: string | undefined;
	kinds: readonly ScenarioKind[];
}

export function createOpener(deps: OpenerDeps) {
	const { rows, secret, standard, offline, fetched = (plain) => plain } = deps;
	const http = async (name: string, target: HttpTarget, fetch = deps.fetch): Promise<OpenProvider> => {
		const { httpProvider } = await import("./http-provider.ts");
		const { responseBytesMax } = WIRE_LIMITS;
		return httpProvider({ ...target, name, fetch, fetchElsewhere: fetched(fetch), responseBytesMax });
	};
	return {
		async open(id: string): Promise<OpenProvider> {
			if (id === DEFAULT_ID) return standard.open();
			const stored = await rows.connectors.get(id);
			if (!stored) throw missing(id);
			if (!stored.enabled) throw switchedOff(id);
			if (stored.providerType === DEMO) return demoProvider(await offline());
			const { sealedKey, providerType } = stored;
			if (sealedKey === undefined && checkType(providerType).key === "required") throw keyless(id);
			const apiKey = sealedKey === undefined ? undefined : openKey(sealedKey, bindingOf(stored), secret);
			return http(id, { providerType, baseUrl: endpointOf(stored)!, apiKey, kinds: stored.kinds as ScenarioKind[] });
		},
		async inline({ providerType, endpoint, apiKey, app }: InlineCredential): Promise<OpenProvider> {
			const { fetch, rules } = deps.inline(app);
			checkInline({ providerType, apiKey });
			const type = checkType(providerType);
			const baseUrl = endpoint === undefined ? type.endpoint : checkedEndpoint(endpoint, providerType, rules);
			if (baseUrl === undefined) throw new NexusError("invalid", `${providerType} needs an endpoint`);
			return http(providerType, { providerType, baseUrl, apiKey, kinds: type.kinds }, fetch);
		},
	};
}

const switchedOff = (id: string): NexusError =>
	new NexusError("precondition", `the connector ${id} is disabled`, { reason: "AI_CONNECTOR_DISABLED" });

const keyless = (id: string): NexusError =>
	new NexusError("precondition", `the connector ${id} has no key: give it one with \`nexus connector key ${id}\``, {
		reason: "AI_CONNECTOR_CREDENTIAL_MISSING",
	});
