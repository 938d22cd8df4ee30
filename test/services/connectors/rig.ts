/** Connectors on a store of their own, with a secret key that a test can take away. */

import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import { createDemo } from "../../../packages/daemon/src/engine/demo/demo.ts";
import { createAudit } from "../../../packages/daemon/src/services/audit/record.ts";
import { type ConnectorDeps, createConnectors } from "../../../packages/daemon/src/services/connectors/connectors.ts";
import type { ConnectorService, Connectors, Provider } from "../../../packages/daemon/src/services/connectors/port.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { openStore, type TestStore } from "../../store.ts";
import { OWNER } from "../parts.ts";

export { appPrincipal as app, OWNER } from "../parts.ts";

export const KEY = "sk-test-0123456789abcdef";

export interface Rig {
	connectors: ConnectorService;
	store: TestStore;
	/** The daemon's secret key; undefined: it is gone. */
	secret: { value: Buffer | undefined };
}

/** Without pauses, so that a test does not wait for the demo's pace. */
export const quickDemo = createDemo({
	now: () => 0,
	after(_, callback) {
		setImmediate(callback);
		return () => {};
	},
});

export function rig(fields: Partial<ConnectorDeps> = {}): Rig {
	const store = openStore(":memory:");
	const secret: Rig["secret"] = { value: undefined };
	const connectors = createConnectors({
		bus: store.bus,
		rows: store.rows,
		clock: systemClock,
		audit: createAudit(systemClock),
		secret: {
			read: () => secret.value,
			make: () => {
				secret.value ??= randomBytes(32);
				return secret.value;
			},
		},
		configured: { engine: quickDemo },
		offline: async () => quickDemo,
		rules: { allowLoopback: true },
		...fields,
	});
	onTestFinished(async () => {
		connectors.close();
		await store.close();
	});
	return { connectors, store, secret };
}

export const signal = (): AbortSignal => new AbortController().signal;

export async function open(connectors: Connectors, id: string): Promise<Provider> {
	return connectors.open((await connectors.find(id, OWNER))!);
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
	const found: T[] = [];
	for await (const item of items) found.push(item);
	return found;
}

export const ask = (text: string, model = "m1") => ({ model, messages: [{ role: "user" as const, text }] });
