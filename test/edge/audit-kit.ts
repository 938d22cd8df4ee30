/** The services over notices, on an edge whose store tells. */

import type { Services } from "../../packages/daemon/src/runtime/wiring/port.ts";
import { AppMessageLogs } from "../../packages/daemon/src/services/apps/messages.ts";
import { createAuditLog } from "../../packages/daemon/src/services/audit/audit.ts";
import { createTelling } from "../../packages/daemon/src/services/audit/mappers.ts";
import { noticeLogs } from "../../packages/daemon/src/services/audit/notices.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { type OpenStore, openStore } from "../store.ts";
import type { Rig, RigOptions } from "./rig.ts";

export function auditOptions(clock: Clock = systemClock) {
	const open: OpenStore = (path, options) => openStore(path, { ...options, tell: createTelling(clock) });
	const services: NonNullable<RigOptions["services"]> = ({ bus, rows }): Partial<Services> => {
		const notices = noticeLogs({ bus, rows });
		const audit = createAudit(clock);
		return { notices, audit: createAuditLog({ bus, rows, notices, audit, clock, log: silentLog }) };
	};
	return { open, services };
}

/** Messages between the applications that these say there are. */
export const appMessagesOf = ({
	bus,
	rows,
	apps,
}: Pick<Rig, "bus" | "rows"> & { apps: { has(id: string): boolean } }) =>
	new AppMessageLogs({ bus, rows, apps, notices: noticeLogs({ bus, rows }), clock: systemClock });
