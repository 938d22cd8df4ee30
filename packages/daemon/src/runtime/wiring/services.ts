/** The services of the runtime contract: made here, each from what it needs, and stopped together with the daemon. */

import type { ReadinessJson } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { Engine, MemoryPort } from "../../engine/engine.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Accepted, ClientMessage, Nex, Outbound } from "../../nex/nex.ts";
import { agentTurns } from "../../services/agents/turns.ts";
import { createClearing } from "../../services/apps/clearing.ts";
import { createAuditLog } from "../../services/audit/audit.ts";
import { noticeLogs } from "../../services/audit/notices.ts";
import { createAudit } from "../../services/audit/record.ts";
import { createQuota } from "../../services/kit/quota.ts";
import { createRealtime } from "../../services/realtime/realtime.ts";
import { createScenarios } from "../../services/scenarios/scenarios.ts";
import { createWorkflows } from "../../services/workflows/workflows.ts";
import type { NexusConfig } from "../config/config.ts";
import type { ServiceRows } from "../data/tables.ts";
import { createAppServices } from "./app-services.ts";
import { openConnectors } from "./connectors.ts";
import { openArtifacts, openJobs } from "./jobs.ts";
import type { Services } from "./port.ts";
import { userTokensOf } from "./user-tokens.ts";

export interface ServiceParts {
	bus: Bus;
	ledger: Ledger;
	rows: ServiceRows;
	broker: Broker;
	engine: Engine;
	memory: MemoryPort;
	config: NexusConfig;
	nex: Pick<Nex, "stats" | "cancel">;
	outbound: Pick<Outbound, "accounts" | "onAccounts">;
	readiness(): ReadinessJson;
	/** Takes a message into its session. */
	submit(message: ClientMessage): Promise<Accepted>;
	clock: Clock;
	log: Log;
}

export interface RunningServices {
	services: Services;
	/** Call it before the ports open: resumes or settles the work that a dead daemon left. */
	recover(): Promise<void>;
	/** Refuses new work at once, waits for what is under way, and aborts what is left at the deadline; jobs have `graceMs` to end then. */
	drain(deadlineMs: number, graceMs: number): Promise<void>;
	/** Releases everything; no reader may be left. */
	close(): Promise<void>;
}

export function createServices(parts: ServiceParts): RunningServices {
	const { bus, rows, config, clock, log, submit } = parts;
	const audit = createAudit(clock);
	const notices = noticeLogs({ bus, rows });
	const quota = createQuota({ bus, rows, limits: config.apps });
	const artifacts = openArtifacts({ ...parts, quota });
	const connectors = openConnectors({ ...parts, audit, transfers: artifacts.transfers });
	const verifyUser = userTokensOf(config, clock);
	const scenarios = createScenarios({
		bus,
		rows,
		connectors,
		clock,
		log,
		audit,
		verifyUser,
		quota,
		abortGraceMs: config.broker.abortGraceMs,
	});
	const jobs = openJobs({ ...parts, connectors, scenarios, artifacts, audit, quota });
	const agents = agentTurns({ ...parts, receive: submit, cancel: (eventId) => parts.nex.cancel(eventId) });
	const workflows = createWorkflows({
		bus,
		rows,
		scenarios,
		jobs,
		agents,
		connectors,
		verifyUser,
		clock,
		log,
		audit,
		quota,
	});
	const realtime = createRealtime({ bus, connectors, submit, clock, log, quota });
	const work = () => ({
		queueDepth: jobs.counts.queued,
		activeInferenceJobs: jobs.counts.running,
		activeWorkflows: workflows.counts.running,
	});
	const apps = createAppServices({ ...parts, audit, notices, quota, work });
	const services: Services = {
		...apps.services,
		memory: parts.memory,
		audit: createAuditLog({ bus, rows, notices, audit, clock, log }),
		notices,
		quota,
		clearApp: createClearing({ bus, rows, artifacts, audit }),
		connectors,
		scenarios,
		artifacts,
		jobs,
		workflows,
		realtime,
	};
	return {
		services,
		async recover() {
			await apps.load();
			const ended = await scenarios.recover();
			if (ended > 0) log.warn({ ended }, "ended model calls that an earlier process left behind");
			await artifacts.recover();
			const settled = await jobs.recover();
			if (settled > 0) log.warn({ settled }, "settled jobs that were running when an earlier process ended");
			// Its nodes ask what became of their jobs and runs.
			const resumed = await workflows.recover();
			if (resumed > 0) log.info({ resumed }, "workflows go on");
			const closed = await realtime.recover();
			if (closed > 0) log.warn({ closed }, "closed realtime sessions that an earlier process left behind");
		},
		async drain(deadlineMs, graceMs) {
			// First the services that would begin more work.
			await Promise.all([
				workflows.close(deadlineMs),
				jobs.close(deadlineMs, graceMs),
				scenarios.drain(deadlineMs),
				realtime.stop(),
			]);
		},
		async close() {
			apps.close();
			await artifacts.close();
			connectors.close();
		},
	};
}
