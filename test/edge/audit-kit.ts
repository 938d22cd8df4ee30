/** The services over notices, on an edge whose store tells. */

import {
	createAudit,
	createAuditLog,
	createTelling,
	noticeLogs,
	type Services,
} from "../../packages/daemon/src/services/services.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { type OpenStore, openStore } from "../store.ts";
import type { RigOptions } from "./rig.ts";

export function auditOptions(clock: Clock = systemClock) {
	const open: OpenStore = (path, options) => openStore(path, { ...options, tell: createTelling(clock) });
	const services: NonNullable<RigOptions["services"]> = ({ bus, ledger }): Partial<Services> => {
		const notices = noticeLogs({ bus, ledger });
		const audit = createAudit(clock);
		return { notices, audit: createAuditLog({ bus, ledger, notices, audit, clock, log: silentLog }) };
	};
	return { open, services };
}
