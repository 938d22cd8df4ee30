/** Adapter processes without an account around them: programs of a line or two, with the limits and rules of the daemon. */

import { MonitorPort } from "../../../packages/daemon/src/nex/accounts/monitor-port.ts";
import { ProcessSupervisor } from "../../../packages/daemon/src/nex/accounts/process-supervisor.ts";
import { PROCESS_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { RESTART_RULES } from "../../../packages/daemon/src/std/supervision.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { onlyMessages } from "./rig.ts";

export const node = (program: string): string[] => [process.execPath, "-e", program];

/** For programs that tell nothing but what the test looks at. */
export const common = {
	env: { PATH: process.env.PATH ?? "" },
	facts: {},
	limits: PROCESS_LIMITS,
	clock: systemClock,
	log: silentLog,
};

const supervised = { ...common, rules: RESTART_RULES, random: () => 0.5, onSpawn() {}, changed() {} };

type Monitored = ConstructorParameters<typeof MonitorPort>[0];

export const monitorOf = (fields: Pick<Monitored, "command"> & Partial<Monitored>): MonitorPort =>
	new MonitorPort({
		...supervised,
		...onlyMessages(),
		onFailure() {},
		waitingMax: 10,
		retryMs: 10,
		retryMsMax: 10,
		...fields,
	});

type Supervised = ConstructorParameters<typeof ProcessSupervisor>[0];

export const supervisorOf = (fields: Pick<Supervised, "command" | "shapes"> & Partial<Supervised>): ProcessSupervisor =>
	new ProcessSupervisor({ ...supervised, lines() {}, lost: () => false, ...fields });
