/** Connectors: who may use which, how they are opened, and how they are. The door of this folder. */

import { requireOwner } from "../kit/principal.ts";
import { Addresses, type AddressRules } from "./addresses.ts";
import { checkInline, DEFAULT_ID } from "./checks.ts";
import { HealthWatch, outcomeOf } from "./health.ts";
import { observed } from "./observed.ts";
import { configuredInfo, type Looked, Opener, type OpenerDeps } from "./opener.ts";
import type { ConnectorService, ConnectorTest } from "./port.ts";
import { endpointOf } from "./provider-types.ts";
import { ConnectorStore, infoOf, isFor, missing, type StoreDeps } from "./store.ts";

export type { SecretKey } from "./keys.ts";
export type { ConfiguredAnswerer } from "./opener.ts";
export { defaultModelOf } from "./provider-types.ts";

export interface ConnectorDeps extends StoreDeps, OpenerDeps, AddressRules {}

export function createConnectors(deps: ConnectorDeps): ConnectorService {
	const { rows, clock } = deps;
	const standard = configuredInfo(deps.configured, clock.now());
	const store = new ConnectorStore(deps);
	const addresses = new Addresses(deps);
	const opener = new Opener(deps, addresses);
	const stopped = new AbortController();
	const health = new HealthWatch({
		clock,
		async probe(id, signal) {
			const looked = await opener.look(id, signal);
			return looked.ok ? { ok: true } : outcomeOf(looked.error);
		},
	});
	health.know(DEFAULT_ID, true);
	void Promise.resolve(rows.connectors.list()).then((all) => {
		for (const { id, enabled } of all) health.know(id, enabled);
	});
	const find: ConnectorService["find"] = async (id, principal) => {
		if (id === DEFAULT_ID) return standard;
		const found = await rows.connectors.get(id);
		return found && isFor(principal, found) ? infoOf(found) : undefined;
	};
	return {
		find,
		report: (id, outcome) => health.report(id, outcome),
		health,
		endpointOf,
		checkInline,
		checkEndpoint: (endpoint, app) => addresses.check(endpoint, app),
		async open({ id }) {
			const provider = await opener.open(id);
			health.used(id);
			return observed(provider, (outcome) => health.report(id, outcome));
		},
		openInline: (credential) => opener.inline(credential),
		async list(principal) {
			const all = await rows.connectors.list();
			return [standard, ...all.filter((one) => isFor(principal, one)).map(infoOf)];
		},
		async create(connector, principal) {
			const made = await store.add(connector, principal);
			health.know(made.id, true);
			return infoOf(made);
		},
		async update(id, change, principal) {
			const changed = await store.change(id, change, principal);
			health.know(id, changed.enabled);
			health.reset(id);
			return infoOf(changed);
		},
		async remove(id, principal) {
			await store.remove(id, principal);
			health.forget(id);
		},
		async test(id, principal) {
			requireOwner(principal);
			if (!(await find(id, principal))) throw missing(id);
			const looked = await opener.look(id, stopped.signal);
			health.report(id, looked);
			return testOf(looked);
		},
		close() {
			stopped.abort();
			health.close();
			addresses.close();
		},
	};
}

function testOf(looked: Looked): ConnectorTest {
	if (!looked.ok) {
		const { reason, message } = looked.error;
		return { ok: false, message, models: [], reason };
	}
	const { models } = looked;
	if (models === undefined) return { ok: true, message: "it answers, but has no list of models", models: [] };
	const count = `${models.length} ${models.length === 1 ? "model" : "models"}`;
	return { ok: true, message: `it answers and has ${count}`, models };
}
