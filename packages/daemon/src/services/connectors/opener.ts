/** From a connector to its provider. Opens the stored connector at the moment of the call: it may have changed since the caller looked it up. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { ConfiguredModel } from "../../engine/engine.ts";
import type { Addresses } from "./addresses.ts";
import { checkedEndpoint, checkInline, checkType, DEFAULT_ID } from "./checks.ts";
import { demoProvider, engineProvider } from "./engine-provider.ts";
import type { OpenProvider } from "./http-provider.ts";
import { openKey } from "./keys.ts";
import type { ConnectorInfo, InlineCredential, ScenarioKind } from "./port.ts";
import { ALL_KINDS, CONFIGURED, DEMO, endpointOf, providerType } from "./provider-types.ts";
import { bindingOf, missing, type StoreDeps } from "./store.ts";
import { type ProviderFetch, WIRE_LIMITS } from "./wire.ts";

/** A model that can be asked by itself, or else the engine. */
export type ConfiguredAnswerer = { model: ConfiguredModel } | { engine: Engine };

export interface OpenerDeps extends Pick<StoreDeps, "rows" | "secret"> {
	/** The answerer behind the connector `default`. */
	configured: ConfiguredAnswerer;
	/** The engine behind connectors of the type `demo`. */
	offline(): Promise<Engine>;
	/** Wraps the fetch of an address that a provider's answer names. */
	fetched?(fetch: ProviderFetch): ProviderFetch;
}

export type Looked = { ok: true; models: string[] | undefined } | { ok: false; error: NexusError };

interface HttpTarget {
	providerType: string;
	baseUrl: string;
	apiKey: string | undefined;
	kinds: readonly ScenarioKind[];
}

export class Opener {
	readonly #deps: OpenerDeps;
	readonly #addresses: Addresses;

	constructor(deps: OpenerDeps, addresses: Addresses) {
		this.#deps = deps;
		this.#addresses = addresses;
	}

	async open(id: string): Promise<OpenProvider> {
		if (id === DEFAULT_ID) return openConfigured(this.#deps.configured);
		const { rows, secret, offline } = this.#deps;
		const stored = await rows.connectors.get(id);
		if (!stored) throw missing(id);
		if (!stored.enabled)
			throw new NexusError("precondition", `the connector ${id} is disabled`, { reason: "AI_CONNECTOR_DISABLED" });
		if (stored.providerType === DEMO) return demoProvider(await offline());
		const { sealedKey, providerType } = stored;
		if (sealedKey === undefined && checkType(providerType).key === "required") throw keyless(id);
		const apiKey = sealedKey === undefined ? undefined : openKey(sealedKey, bindingOf(stored), secret);
		const target = { providerType, baseUrl: endpointOf(stored)!, apiKey, kinds: stored.kinds as ScenarioKind[] };
		return this.#guarded(id, target, this.#addresses.of().fetch);
	}

	async inline({ providerType, endpoint, apiKey, app }: InlineCredential): Promise<OpenProvider> {
		const { fetch, rules } = this.#addresses.of(app);
		checkInline({ providerType, apiKey });
		const type = checkType(providerType);
		const baseUrl = endpoint === undefined ? type.endpoint : checkedEndpoint(endpoint, providerType, rules);
		if (baseUrl === undefined) throw new NexusError("invalid", `${providerType} needs an endpoint`);
		return this.#guarded(providerType, { providerType, baseUrl, apiKey, kinds: type.kinds }, fetch);
	}

	/** Whether it answers and which models it has: cheap, bounded in time, and without anything that a user wrote. Never rejects. */
	async look(id: string, signal: AbortSignal): Promise<Looked> {
		const late = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS_MAX)]);
		try {
			return { ok: true, models: await (await this.open(id)).models(late) };
		} catch (cause) {
			return { ok: false, error: lateOr(cause, late) };
		}
	}

	#guarded(name: string, target: HttpTarget, fetch: ProviderFetch): Promise<OpenProvider> {
		const { fetched = (plain) => plain } = this.#deps;
		return openHttp(name, target, fetch, fetched(fetch));
	}
}

async function openHttp(
	name: string,
	target: HttpTarget,
	fetch: ProviderFetch,
	fetchElsewhere: ProviderFetch,
): Promise<OpenProvider> {
	const { httpProvider } = await import("./http-provider.ts");
	const { responseBytesMax } = WIRE_LIMITS;
	return httpProvider({ ...target, name, fetch, fetchElsewhere, responseBytesMax });
}

const CONFIGURED_NAME = "the configured model";

/** Its address and key are the operator's, so no guard stands before them. */
async function openConfigured(configured: ConfiguredAnswerer): Promise<OpenProvider> {
	if ("engine" in configured) {
		const { engine } = configured;
		return engine.scripted ? demoProvider(engine) : engineProvider(engine, CONFIGURED_NAME);
	}
	const { provider, apiKey, baseUrl = providerType(provider)!.endpoint! } = configured.model;
	return openHttp(CONFIGURED_NAME, { providerType: provider, baseUrl, apiKey, kinds: ["text"] }, fetch, fetch);
}

/** The connector `default`: the model that the daemon is configured with. */
export function configuredInfo(configured: ConfiguredAnswerer, now: number): ConnectorInfo {
	const isDemo = "engine" in configured && configured.engine.scripted === true;
	const model = "model" in configured ? configured.model.model : isDemo ? DEMO : configured.engine.name;
	return {
		id: DEFAULT_ID,
		providerType: isDemo ? DEMO : CONFIGURED,
		enabled: true,
		defaultModel: model,
		models: [model],
		kinds: isDemo ? ALL_KINDS : ["text"],
		createdAt: now,
		updatedAt: now,
		builtIn: true,
	};
}

const LOOK_MS_MAX = 10_000;

/** The limit of a look says it better than what it cut off. */
function lateOr(cause: unknown, signal: AbortSignal): NexusError {
	if ((signal.reason as Error | undefined)?.name !== "TimeoutError") return toNexusError(cause, "engine_failed");
	const message = `it did not answer within ${LOOK_MS_MAX / 1000} seconds`;
	return new NexusError("timeout", message, { reason: "AI_PROVIDER_TIMEOUT", cause });
}

const keyless = (id: string): NexusError =>
	new NexusError("precondition", `the connector ${id} has no key: give it one with \`nexus connector key ${id}\``, {
		reason: "AI_CONNECTOR_CREDENTIAL_MISSING",
	});
