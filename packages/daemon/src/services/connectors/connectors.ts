/** Connectors: who may use which, how they are opened, and how they are. The door of this folder. */

import { AddressRefused, type GuardRules } from "@nexus-stream/adapter/net/address-guard";
import type { GuardedFetch, ResolveName } from "@nexus-stream/adapter/net/guarded-fetch";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Engine } from "@nexus-stream/protocol/engine";
import { loadOnce } from "../../std/load-once.ts";
import { type Principal, requireOwner } from "../kit/principal.ts";
import { builtIn, type ConfiguredAnswerer } from "./built-in.ts";
import { checkInline, DEFAULT_ID } from "./checks.ts";
import { watchHealth } from "./health-watch.ts";
import { lookAt, testOf } from "./look.ts";
import { createOpener } from "./opener.ts";
import type { ConnectorInfo, Connectors, ScenarioKind } from "./port.ts";
import { outcomeOf, reporting } from "./reporting.ts";
import type { StoredConnector } from "./rows.ts";
import { connectorStore, endpointOf, missing, type StoreDeps } from "./store.ts";
import { addressFailure, type ProviderFetch } from "./wire.ts";

export type { ConfiguredAnswerer } from "./built-in.ts";
export type { SecretKey } from "./keys.ts";
export { defaultModelOf } from "./provider-types.ts";

export interface ConnectorDeps extends StoreDeps {
	/** The answerer behind the connector `default`. */
	configured: ConfiguredAnswerer;
	/** The engine behind connectors of the type `demo`. */
	offline(): Promise<Engine>;
	/** Wraps the fetch of an address that a provider's answer names. */
	fetched?(fetch: ProviderFetch): ProviderFetch;
	/** Applications whose own addresses follow `rules`, too. Those of others have to be on the internet. */
	inlineApps?: readonly string[] | undefined;
	/** For tests: all addresses of a name. */
	resolve?: ResolveName;
}

export function createConnectors(deps: ConnectorDeps): Connectors {
	const { rows, clock, rules = {}, inlineApps = [], resolve } = deps;
	const standard = builtIn(deps.configured, clock.now());
	const store = connectorStore(deps);
	const stopped = new AbortController();
	/** Made by the first request: most daemons never make one. */
	const made: GuardedFetch[] = [];
	const guardOf = (guarded: GuardRules) =>
		loadOnce(async () => {
			const { guardedFetch } = await import("@nexus-stream/adapter/net/guarded-fetch");
			const guard = guardedFetch({ ...guarded, resolve });
			made.push(guard);
			return guard;
		});
	const [own, strict] = [guardOf(rules), guardOf(STRICT)];
	const isStrict = (app: string | undefined) => app !== undefined && !inlineApps.includes(app);
	const fetchBy =
		(guard: typeof own): ProviderFetch =>
		async (url, init) =>
			(await guard()).fetch(url, init);
	const opener = createOpener({
		...deps,
		standard,
		fetch: fetchBy(own),
		inline: (app) => (isStrict(app) ? { fetch: fetchBy(strict), rules: STRICT } : { fetch: fetchBy(own), rules }),
	});
	/** Errors that a provider's call has reported already: the caller's own report of the same error is ignored. */
	const told = new WeakSet<Error>();

	const health = watchHealth({
		clock,
		async probe(name, signal) {
			const looked = await look(name, signal);
			return looked.ok ? { ok: true } : outcomeOf(looked.error);
		},
	});
	health.know(DEFAULT_ID, true);
	void Promise.resolve(rows.connectors.list()).then((all) => {
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
		const found = await rows.connectors.get(id);
		return found && isFor(principal, found) ? infoOf(found) : undefined;
	};

	return {
		find,
		report,
		health,
		endpointOf,
		checkInline,
		async list(principal) {
			const all = await rows.connectors.list();
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
		async checkEndpoint(endpoint, app) {
			if (URL.parse(endpoint) === null) throw new NexusError("invalid", "the endpoint is not an address");
			const guard = await (isStrict(app) ? strict : own)();
			await guard.check(endpoint).catch((cause: unknown) => {
				if (!(cause instanceof AddressRefused)) throw toNexusError(cause, "unavailable");
				if (cause.refusal === "forbidden" && isStrict(app)) throw foreignAddress(app!);
				throw addressFailure(cause);
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
			for (const guard of made) guard.close();
		},
	};
}

/** An address in an application's request may lead only to the internet. */
const STRICT: GuardRules = {};

/** Says nothing of what the owner's network has at that address. */
const foreignAddress = (app: string): NexusError =>
	new NexusError(
		"forbidden",
		`a request of an application may name https addresses on the internet only: use a connector, or have the owner name ${app} in connectors.inlineApps`,
		{ reason: "AI_ENDPOINT_FORBIDDEN" },
	);

const isFor = ({ owner, appId }: Principal, connector: StoredConnector): boolean =>
	owner || connector.appId === undefined || connector.appId === appId;

function infoOf({ sealedKey: _, revision: __, kinds, ...shown }: StoredConnector): ConnectorInfo {
	return { ...shown, kinds: kinds as ScenarioKind[], builtIn: false };
}
