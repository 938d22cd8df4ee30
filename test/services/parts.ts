/** Dependencies of services with durable work, and their callers, as tests need them. */

import { expect } from "vitest";
import type { Bus } from "../../packages/daemon/src/bus/bus.ts";
import type { ServiceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import type { ConnectorInfo } from "../../packages/daemon/src/services/connectors/port.ts";
import type { DurableWorkDeps } from "../../packages/daemon/src/services/kit/durable-work.ts";
import type { Principal } from "../../packages/daemon/src/services/kit/principal.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import type { ErrorCode, Reason } from "../../packages/protocol/src/protocol.ts";

export const OWNER: Principal = { owner: true, address: "127.0.0.1", isPrivate: true };
export const appPrincipal = (appId: string): Principal => ({ ...OWNER, owner: false, appId });

/** The work is refused with this code and, where it is named, this reason. */
export const rejectsWith = (work: unknown, code: ErrorCode, reason?: Reason): Promise<void> =>
	expect(work).rejects.toMatchObject(reason === undefined ? { code } : { code, reason });

/** On a store that has room for everything. */
export const durableParts = <Store extends { bus: Bus; rows: ServiceRows }>(
	{ bus, rows }: Store,
	clock: Clock = systemClock,
): DurableWorkDeps & { rows: ServiceRows } => ({
	bus,
	rows,
	audit: createAudit(clock),
	quota: { check: async () => {}, holding: (_app, _bytes, work) => work() },
	clock,
	log: silentLog,
});

export const connectorOf = (id: string, fields: Partial<ConnectorInfo> = {}): ConnectorInfo => ({
	id,
	providerType: "openai",
	endpoint: "https://models.example",
	enabled: true,
	builtIn: false,
	defaultModel: "small",
	models: ["small", "large"],
	kinds: ["text", "speech", "embed", "transcribe"],
	createdAt: 1,
	updatedAt: 1,
	...fields,
});
