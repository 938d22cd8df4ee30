/** Connectors: who may use which, how they are opened, and how they are. The door of this folder. */

import type { Engine } from "../../engine/engine.ts";
import type { StoredConnector } from "../../ledger/ledger.ts";
import { NexusError, toNexusError } from "../../protocol/protocol.ts";
import { AddressRefused } from "../../std/address-guard.ts";
import type { GuardedFetch, ResolveName } from "../../std/guarded-fetch.ts";
import { loadOnce } from "../../std/load-once.ts";
import { type Principal, requireOwner } from "../principal.ts";
import { builtIn, type ConfiguredAnswerer } from "./built-in.ts";
import { checkInline, DEFAULT_ID } from "./checks.ts";
import { watchHealth } from "./health-watch.ts";
import { lookAt, testOf } from "./look.ts";
import { createOpener } from "./opener.ts";
import type { ConnectorInfo, Connectors, ScenarioKind } from "./port.ts";
import { outcomeOf, reporting } from "./reporting.ts";
import { connectorStore, endpointOf, missing, type StoreDeps } from "./store.ts";
import { addressFailure, type Fetch } from "./wire.ts";

export type { ConfiguredAnswerer } from "./built-in.ts";
export type { SecretKey } from "./keys.ts";
export { defaultModelOf } from "./provider-types.ts";

export interface ConnectorDeps extends StoreDeps {
	/** What `default` is. */
	configured: ConfiguredAnswerer;
	/** What connectors of the type `demo` say. */
	offline(): Promise<Engine>;
	/** What is done with a fetch of an address that a provider's answer names. */
	fetched?(fetch: Fetch): Fetch;
	/** For tests: all addresses of a name. */
	resolve?: ResolveName;
}

export function createConnectors(deps: ConnectorDeps): Connectors {
	const { ledger, clock, rules = {}, resolve } = deps;
	const standard = builtIn(deps.configured, clock.now());
	const store = connectorStore(deps);
	const stopped = new AbortController();
	/** Made by the first request: most daemons never make one. */
	let made: GuardedFetch | undefined;
	const guard = loadOnce(async () => {
		const { guardedFetch } = await import("../../std/guarded-fetch.ts");
		made = guardedFetch({ ...rules, ...(resolve && { resolve }) });
		return made;
	});
	const fetch: Fetch = async (url, init) => (await guard()).fetch(url, init);
	const opener = createOpener({ ...deps, standard, fetch });
	/** An error that a provider's call has told already is not told again by whoever made the call. */
	const told = new WeakSet<Error>();

	const health = watchHealth({
		clock,
		async probe(name, signal) {
			const looked = await look(name, signal);
			return looked.ok ? { ok: true } : outcomeOf(looked.error);
		},
	});
	health.know(DEFAULT_ID, true);
	void Promise.resolve(ledger.connectors.list()).then((all) => {
		for (const { id, enabled } of all) health.know(id, enabled);
	});

	const look = (id: string, signal: AbortSignal) => lookAt(() => opener.open(id), signal);
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
		checkInline,
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
			const looked = await look(id, stopped.signal);
			report(id, looked);
			return testOf(looked);
		},
		async checkEndpoint(endpoint) {
			if (URL.parse(endpoint) === null) throw new NexusError("invalid", "the endpoint is not an address");
			await (await guard()).check(endpoint).catch((cause: unknown) => {
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
			stopped.abort();
			health.close();
			made?.close();
		},
	};
}

const isFor = ({ owner, appId }: Principal, connector: StoredConnector): boolean =>
	owner || connector.appId === undefined || connector.appId === appId;

function infoOf({ sealedKey: _, revision: __, kinds, ...shown }: StoredConnector): ConnectorInfo {
	return { ...shown, kinds: kinds as ScenarioKind[], builtIn: false };
}
