/** The services of the runtime contract: made here, each from what it needs, and stopped together with the daemon. */

import { join } from "node:path";
import type { ReadinessJson } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import { chooseEngine, engineNamed, loadEngine, type MemoryPort } from "../../engine/engine.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Accepted, ClientMessage, Nex, Outbound } from "../../nex/nex.ts";
import { createAccountSessions } from "../../services/accounts/accounts.ts";
import { agentTurns } from "../../services/agents/turns.ts";
import { createApplications } from "../../services/apps/apps.ts";
import { createClearing } from "../../services/apps/clearing.ts";
import { AppMessageLogs } from "../../services/apps/messages.ts";
import { StoredArtifacts } from "../../services/artifacts/artifacts.ts";
import type { Transfers } from "../../services/artifacts/port.ts";
import { createAuditLog } from "../../services/audit/audit.ts";
import { noticeLogs } from "../../services/audit/notices.ts";
import type { Audit } from "../../services/audit/port.ts";
import { createAudit } from "../../services/audit/record.ts";
import { type ConfiguredAnswerer, createConnectors } from "../../services/connectors/connectors.ts";
import type { ConnectorService } from "../../services/connectors/port.ts";
import { createRuntimeHealth } from "../../services/health/health.ts";
import { createJobs } from "../../services/jobs/jobs.ts";
import { OWNER_APP } from "../../services/kit/principal.ts";
import { createQuota } from "../../services/kit/quota.ts";
import { createRealtime } from "../../services/realtime/realtime.ts";
import { createScenarios } from "../../services/scenarios/scenarios.ts";
import { createSignIns } from "../../services/signins/signins.ts";
import { createWorkflows } from "../../services/workflows/workflows.ts";
import type { NexusConfig } from "../config/config.ts";
import { dataPaths } from "../data/data-dir.ts";
import { secretKey } from "../data/secrets.ts";
import type { ServiceRows } from "../data/tables.ts";
import { userTokensOf } from "../grpc.ts";
import type { Services } from "./port.ts";

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
	/** Resumes or settles what a node has left that died while this daemon ran. Can be repeated. */
	takeOver(): Promise<void>;
	/** Refuses new work at once, waits for what is under way, and aborts what is left at the deadline; jobs have `graceMs` to end then. */
	drain(deadlineMs: number, graceMs: number): Promise<void>;
	/** Releases everything; no reader may be left. */
	close(): Promise<void>;
}

export function createServices(parts: ServiceParts): RunningServices {
	const { bus, rows, outbound, memory, clock, log } = parts;
	const audit = createAudit(clock);
	const notices = noticeLogs({ bus, rows });
	const quota = createQuota({ bus, rows, limits: parts.config.apps });
	const shared = { bus, rows, clock, log, audit, quota, notices };
	const work = createWork(parts, shared);
	const apps = createApplications(shared);
	const signIns = createSignIns(shared);
	const accounts = createAccountSessions({ platforms: outbound, signIns, clock, log });
	const health = createRuntimeHealth({ ...healthSources(parts, work), clock, log });
	return {
		services: {
			...work,
			apps,
			appMessages: new AppMessageLogs({ ...shared, apps }),
			clearApp: createClearing({ ...shared, artifacts: work.artifacts }),
			signIns,
			accounts,
			health,
			memory,
			audit: createAuditLog(shared),
			notices,
			quota,
		},
		async recover() {
			// Until then only the owner's token is known.
			await Promise.all([apps.load(), signIns.load()]);
			await work.artifacts.recover();
			await recoverWork(work, log);
		},
		takeOver: () => recoverWork(work, log),
		async drain(deadlineMs, graceMs) {
			const { workflows, jobs, scenarios, realtime } = work;
			// First the services that would begin more work.
			await Promise.all([
				workflows.close(deadlineMs),
				jobs.close(deadlineMs, graceMs),
				scenarios.drain(deadlineMs),
				realtime.stop(),
			]);
		},
		async close() {
			for (const service of [apps, signIns, accounts, health]) service.close();
			await work.artifacts.close();
			work.connectors.close();
		},
	};
}

type Work = Pick<Services, "artifacts" | "connectors" | "scenarios" | "jobs" | "workflows" | "realtime">;
type Shared = Pick<ServiceParts, "bus" | "rows" | "clock" | "log"> &
	Pick<Services, "quota"> & { audit: ReturnType<typeof createAudit> };

/** The services that do work for callers. */
function createWork(parts: ServiceParts, shared: Shared): Work {
	const { config, clock, submit, nex } = parts;
	const dir = join(config.data, "artifacts");
	const artifacts = new StoredArtifacts({ ...shared, dir, limits: config.artifacts });
	const connectors = openConnectors({ ...parts, ...shared, transfers: artifacts.transfers });
	const verifyUser = userTokensOf(config, clock);
	const { abortGraceMs } = config.broker;
	const scenarios = createScenarios({ ...shared, connectors, verifyUser, abortGraceMs });
	const jobs = createJobs({ ...shared, scenarios, artifacts, limits: config.jobs });
	const agents = agentTurns({ ...parts, receive: submit, cancel: (eventId) => nex.cancel(eventId) });
	const workflows = createWorkflows({ ...shared, scenarios, jobs, agents, connectors, verifyUser });
	const realtime = createRealtime({ ...shared, connectors, submit });
	return { artifacts, connectors, scenarios, jobs, workflows, realtime };
}

async function recoverWork({ scenarios, jobs, workflows, realtime }: Work, log: Log): Promise<void> {
	const ended = await scenarios.recover();
	if (ended > 0) log.warn({ ended }, "ended model calls that a dead daemon left behind");
	const settled = await jobs.recover();
	if (settled > 0) log.warn({ settled }, "settled jobs that were running when their daemon died");
	// Its nodes ask what became of their jobs and runs.
	const resumed = await workflows.recover();
	if (resumed > 0) log.info({ resumed }, "workflows go on");
	const closed = await realtime.recover();
	if (closed > 0) log.warn({ closed }, "closed realtime sessions that a dead daemon left behind");
}

const healthSources = ({ broker, nex, readiness }: ServiceParts, { jobs, workflows }: Work) => ({
	status() {
		const { state, detail } = readiness();
		return { status: state, reason: detail };
	},
	work: () => ({
		queueDepth: nex.stats().waiting + jobs.counts.queued,
		activeRuns: broker.liveRuns().length,
		activeInferenceJobs: jobs.counts.running,
		activeWorkflows: workflows.counts.running,
	}),
	usage() {
		const { user, system } = process.cpuUsage();
		return { cpuMicros: user + system, memoryBytes: process.memoryUsage.rss() };
	},
});

export interface ConnectorParts {
	bus: Pick<Bus, "write">;
	rows: Pick<ServiceRows, "connectors">;
	engine: Engine;
	config: NexusConfig;
	clock: Clock;
	audit: Audit;
	/** Tracks the daemon's own downloads. */
	transfers: Pick<Transfers, "tracked">;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function openConnectors(parts: ConnectorParts, env: Environment = process.env): ConnectorService {
	const { bus, rows, engine, config, clock, audit, transfers } = parts;
	return createConnectors({
		bus,
		rows,
		clock,
		audit,
		secret: secretKey(dataPaths(config.data), env),
		configured: configuredOf(engine, config, env),
		// The engine that answers when nothing is configured.
		offline: () => loadEngine(chooseEngine(undefined, {}, {}), { base: config.base }),
		rules: { ...config.connectors, section: "connectors." },
		inlineApps: config.connectors?.inlineApps,
		fetched: (fetch) => transfers.tracked(fetch, OWNER_APP),
	});
}

/** The engine's model, asked by itself; the engine where it has none. */
export function configuredOf(engine: Engine, config: NexusConfig, env: Environment): ConfiguredAnswerer {
	const { entry, section } = engineNamed(engine.name, config) ?? {};
	if (entry?.model === undefined || engine.scripted) return { engine };
	try {
		const model = entry.model(section, env);
		return model ? { model } : { engine };
	} catch {
		// Each of its agents has its own model, or a program has made it: it runs, so it can be asked.
		return { engine };
	}
}
