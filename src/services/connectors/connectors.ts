/** Connectors: who may use which, how they are opened, and how they are. The door of this folder. */

import type { Engine } from "../../engine/engine.ts";
import type { StoredConnector } from "../../ledger/ledger.ts";
import { NexusError, toNexusError } from "../../protocol/protocol.ts";
import { AddressRefused, guardedFetch, type ResolveName } from "../../std/guarded-fetch.ts";
import { type Principal, requireOwner } from "../principal.ts";
import { type BuiltIn, builtIn, type ConfiguredAnswerer } from "./built-in.ts";
import { checkedEndpoint, checkKey, checkType, DEFAULT_ID } from "./checks.ts";
import { demoProvider } from "./demo.ts";
import { watchHealth } from "./health-watch.ts";
import type { OpenProvider } from "./http-provider.ts";
import { openKey } from "./keys.ts";
import type { ConnectorInfo, Connectors, ConnectorTest, ScenarioKind } from "./port.ts";
import { DEMO } from "./provider-types.ts";
import { outcomeOf, reporting } from "./reporting.ts";
import { bindingOf, connectorStore, endpointOf, missing, type StoreDeps } from "./store.ts";
import { addressFailure, WIRE_LIMITS } from "./wire.ts";

export type { ConfiguredAnswerer } from "./built-in.ts";
export type { SecretKey } from "./keys.ts";
export { defaultModelOf } from "./provider-types.ts";

export interface ConnectorDeps extends StoreDeps {
	/** What `default` is. */
	configured: ConfiguredAnswerer;
	/** What connectors of the type `demo` say. */
	offline(): Promise<Engine>;
	/** What is done with a fetch of an address that a provider's answer names. */
	fetched?(fetch: GuardFetch): GuardFetch;
	/** For tests: all addresses of a name. */
	resolve?: ResolveName;
}

/** A look at a provider takes no longer. */
const TEST_MS_MAX = 10_000;

export function createConnectors(deps: ConnectorDeps): Connectors {
	const { ledger, clock, rules = {}, resolve } = deps;
	const standard = builtIn(deps.configured, clock.now());
	const store = connectorStore(deps);
	const guard = guardedFetch({ ...rules, ...(resolve && { resolve }) });
	const opener = createOpener(deps, standard, (url, init) => guard.fetch(url, init));
	/** An error that a provider's call has told already is not told again by whoever made the call. */
	const told = new WeakSet<Error>();

	const health = watchHealth({
		clock,
		async probe(name, signal) {
			const { ok, error } = await look(name, signal);
			return ok ? { ok } : outcomeOf(error);
		},
	});
	health.know(DEFAULT_ID, true);
	void Promise.resolve(ledger.connectors.list()).then((all) => {
		for (const { id, enabled } of all) health.know(id, enabled);
	});

	const look = async (id: string, signal: AbortSignal) => {
		const late = AbortSignal.any([signal, AbortSignal.timeout(TEST_MS_MAX)]);
		try {
			return { ok: true as const, models: await (await opener.open(id)).models(late) };
		} catch (cause) {
			return { ok: false as const, error: lateOr(cause, late) };
		}
	};
	const report: Connectors["report"] = (id, outcome) => {
		if (outcome.ok) return health.outcome(id, outcome);
		if (told.has(outcome.error)) return;
		told.add(outcome.error);
		const said = outcomeOf(outcome.error);
		if (said) health.outcome(id, said);
	};
	const find: Connectors["find"] = async (id, principal) => {
		if (id === DEFAULT_ID) return standard.info;
		const found = await ledger.connectors.get(id);
		return found && isFor(principal, found) ? infoOf(found) : undefined;
	};

	return {
		find,
		report,
		health,
		endpointOf,
		async list(principal) {
			const all = await ledger.connectors.list();
			return [standard.info, ...all.filter((one) => isFor(principal, one)).map(infoOf)];
		},
		async create(connector, principal) {
			requireOwner(principal);
			const made = await store.add(connector, principal);
			health.know(made.id, true);
			return infoOf(made);
		},
		async update(id, change, principal) {
			requireOwner(principal);
			const changed = await store.change(id, change, principal);
			health.know(id, changed.enabled);
			health.reset(id);
			return infoOf(changed);
		},
		async remove(id, principal) {
			requireOwner(principal);
			await store.remove(id, principal);
			health.forget(id);
		},
		async test(id, principal) {
			requireOwner(principal);
			if (!(await find(id, principal))) throw missing(id);
			const seen = await look(id, new AbortController().signal);
			report(id, seen);
			return testOf(seen);
		},
		async checkEndpoint(endpoint) {
			if (URL.parse(endpoint) === null) throw new NexusError("invalid", "the endpoint is not an address");
			await guard.check(endpoint).catch((cause: unknown) => {
				throw cause instanceof AddressRefused ? addressFailure(cause) : toNexusError(cause, "unavailable");
			});
		},
		async open({ id }) {
			const provider = await opener.open(id);
			health.used(id);
			return reporting(provider, (outcome) => report(id, outcome));
		},
		openInline: (credential) => opener.inline(credential),
		close() {
			health.close();
			guard.close();
		},
	};
}

const isFor = ({ owner, appId }: Principal, connector: StoredConnector): boolean =>
	owner || connector.appId === undefined || connector.appId === appId;

function infoOf({ sealedKey: _, revision: __, kinds, ...shown }: StoredConnector): ConnectorInfo {
	return { ...shown, kinds: kinds as ScenarioKind[], builtIn: false };
}

/** The limit of a look says it better than what it cut off. */
function lateOr(cause: unknown, signal: AbortSignal): NexusError {
	if ((signal.reason as Error | undefined)?.name !== "TimeoutError") return toNexusError(cause, "engine_failed");
	const message = `it did not answer within ${TEST_MS_MAX / 1000} seconds`;
	return new NexusError("timeout", message, { reason: "AI_PROVIDER_TIMEOUT", cause });
}

function testOf(seen: { ok: true; models: string[] | undefined } | { ok: false; error: NexusError }): ConnectorTest {
	if (!seen.ok) {
		const { reason, message } = seen.error;
		return { ok: false, message, models: [], ...(reason !== undefined && { reason }) };
	}
	const { models } = seen;
	if (models === undefined) return { ok: true, message: "it answers, but has no list of models", models: [] };
	return {
		ok: true,
		message: `it answers and has ${models.length} ${models.length === 1 ? "model" : "models"}`,
		models,
	};
}

type GuardFetch = ReturnType<typeof guardedFetch>["fetch"];

/** Opens what is stored at the moment of the call: a connector may have been changed since somebody looked it up. */
function createOpener(deps: ConnectorDeps, standard: BuiltIn, fetch: GuardFetch) {
	const { ledger, secret, rules = {}, offline, fetched = (plain) => plain } = deps;
	const http = async (
		name: string,
		given: { providerType: string; baseUrl: string; apiKey?: string | undefined; kinds: readonly ScenarioKind[] },
	) => {
		const { httpProvider } = await import("./http-provider.ts");
		const { responseBytesMax } = WIRE_LIMITS;
		return httpProvider({
			...given,
			apiKey: given.apiKey,
			name,
			fetch,
			fetchElsewhere: fetched(fetch),
			responseBytesMax,
		});
	};
	return {
		async open(id: string): Promise<OpenProvider> {
			if (id === DEFAULT_ID) return standard.open();
			const stored = await ledger.connectors.get(id);
			if (!stored) throw missing(id);
			if (!stored.enabled)
				throw new NexusError("precondition", `the connector ${id} is switched off`, {
					reason: "AI_CONNECTOR_DISABLED",
				});
			if (stored.providerType === DEMO) return demoProvider(await offline());
			const { sealedKey, providerType } = stored;
			if (sealedKey === undefined && checkType(providerType).key === "required") throw keyless(id);
			const apiKey = sealedKey === undefined ? undefined : openKey(sealedKey, bindingOf(stored), secret);
			return http(id, { providerType, baseUrl: endpointOf(stored)!, apiKey, kinds: stored.kinds as ScenarioKind[] });
		},
		async inline({ providerType, endpoint, apiKey }: Parameters<Connectors["openInline"]>[0]) {
			const type = checkType(providerType);
			if (type.key === undefined) throw new NexusError("invalid", `${providerType} takes no key of a request`);
			checkKey(apiKey);
			const baseUrl = endpoint === undefined ? type.endpoint : checkedEndpoint(endpoint, providerType, rules);
			if (baseUrl === undefined) throw new NexusError("invalid", `${providerType} needs an endpoint`);
			return http(providerType, { providerType, baseUrl, apiKey, kinds: type.kinds });
		},
	};
}

const keyless = (id: string): NexusError =>
	new NexusError("precondition", `the connector ${id} has no key: give it one with \`nexus connector key ${id}\``, {
		reason: "AI_CONNECTOR_CREDENTIAL_MISSING",
	});
