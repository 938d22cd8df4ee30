/** The daemon's life: starts the parts in the one safe order, and stops them in the reverse. */

import { type DaemonState, NexusError, type ReadinessJson } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { BROKER_LIMITS, type Broker, createBroker, type RunObserver } from "../broker/broker.ts";
import { createEdge, type Edge, type EdgeDeps } from "../edge/edge.ts";
import {
	chooseEngine,
	type Engine,
	type EngineChoice,
	type EngineServices,
	loadEngine,
	type Mcp,
	type MemoryPort,
} from "../engine/engine.ts";
import { createNex, createOutbound, type Nex, type Outbound } from "../nex/nex.ts";
import { once } from "../services/kit/once.ts";
import { OWNER_APP } from "../services/kit/principal.ts";
import { createMemory } from "../services/memory/memory.ts";
import { loadOnce } from "../std/load-once.ts";
import { createLock } from "../std/lock.ts";
import { idleChannels, idleRemedy, nexConfig } from "./config/channels.ts";
import { completeConfig, type NexusConfig, requireTokenOnPublicHost } from "./config/config.ts";
import { daemonToken, prepareDataDir, removeDaemonRecord, writeDaemonRecord } from "./data/data-dir.ts";
import { lockDataDir } from "./data/data-lock.ts";
import { openStore, type Store } from "./data/store.ts";
import { openGrpcPort } from "./grpc-port.ts";
import { createLab } from "./lab/lab.ts";
import { createLogger } from "./observe/logger.ts";
import type { MetricsSource } from "./observe/metrics.ts";
import { RunCounts } from "./observe/run-counts.ts";
import { openTracing, type Tracing, tracingConfig } from "./observe/tracing.ts";
import { packageVersion, pageDir } from "./package.ts";
import type { Daemon, DaemonOptions } from "./port.ts";
import { keepRetention } from "./retention.ts";
import { Starting } from "./starting.ts";
import { changedAccounts, startedWith } from "./wiring/audited.ts";
import { createEngineServices, openMcp } from "./wiring/engine-services.ts";
import { stateFeed } from "./wiring/health.ts";
import { reportAttachments } from "./wiring/jobs.ts";
import { createServices, type RunningServices } from "./wiring/services.ts";

/** Everything that was started, newest last: undone in the reverse order. */
type Undo = { what: string; stop: () => void | Promise<void> }[];

interface Life {
	state: DaemonState;
	/** Tells who listens to it. */
	changed(): void;
	readonly log: Log;
	readonly undo: Undo;
	/** Why nothing can be saved, whatever the store says. */
	problem(): string | undefined;
}

export async function startDaemon(options: DaemonOptions = {}): Promise<Daemon> {
	const { config: whole = {}, logger, ...given } = options;
	if (typeof whole !== "object")
		throw new NexusError("config", "startDaemon: `config` is an object, not a file's name");
	const { engine, ...rest } = { ...whole, ...given };
	const config = completeConfig(rest);
	const life: Life = {
		state: "STARTING",
		changed() {},
		log: logger ?? createLogger(config.log.level),
		undo: [],
		problem: () => undefined,
	};
	try {
		return await start(life, config, engine);
	} catch (cause) {
		await stop(life);
		throw cause;
	}
}

async function start(life: Life, config: NexusConfig, choice: EngineChoice | Engine | undefined): Promise<Daemon> {
	const { log, undo } = life;
	requireTokenOnPublicHost(config);
	keepDebuggerShut(log);
	const starting = new Starting({ ...config, clock: systemClock, log });
	undo.push({ what: "answers during the start", stop: () => starting.end() });
	const paths = await starting.whenWritable(() => prepareDataDir(config.data));
	const lock = await starting.whenWritable(() => lockDataDir(paths));
	undo.push({ what: "lock", stop: () => lock.release() });
	// Whoever wrote it is gone: the lock is ours.
	removeDaemonRecord(paths);
	const guard = () => {
		const problem = lock.problem();
		if (problem !== undefined) throw new NexusError("unavailable", problem);
	};
	const store = await starting.whenWritable(() => openStore(paths.db, config, log, guard));
	starting.opened(() => store.bus.healthy);
	undo.push({ what: "store", stop: () => store.close() });
	await starting.whenWritable(() => lock.settle(log));
	life.problem = () => lock.problem();
	const token = await starting.whenWritable(() => daemonToken(paths, config.token));
	const memory = createMemory({ ...store, config: config.memory, clock: systemClock });
	const mcp = openMcp(config, log);
	undo.push({ what: "MCP servers", stop: () => mcp?.close() });
	const engineServices = createEngineServices(config, log, { memory, mcp });
	const engine = isEngine(choice) ? choice : await findEngine(choice, config, engineServices);
	undo.push({ what: "engine", stop: () => engine.close?.() });
	const otel = tracingConfig(config.otel, process.env);
	const outbound = () => parts.outbound;
	const tracing = otel && (await openTracing(otel, { outbound, version: packageVersion(), log }));
	undo.push({ what: "spans", stop: () => tracing?.close() });
	const parts: DaemonParts = compose(life, config, store, { engine, engineServices, token, memory, mcp, tracing });
	undo.push({ what: "work", stop: () => stopWork(parts, config) });
	// Plugins have to be there before a queued message becomes a run; what is owed goes on before newer messages are answered.
	await parts.nex.load();
	const { recovered } = await parts.nex.recover(() => parts.outbound.start());
	if (recovered > 0) log.warn({ recovered }, "settled runs that an earlier process left behind");
	await parts.running.recover();
	parts.nex.start();
	await starting.end();
	const { url } = await parts.edge.listen(config.host, config.port);
	const grpc = await openGrpcPort(parts.edge, config, Number(new URL(url).port), log);
	const ports = { url, grpc };
	const record = { pid: process.pid, ...ports, started_at: Date.now() };
	await starting.whenWritable(() => writeDaemonRecord(paths, record));
	undo.push({ what: "daemon record", stop: () => removeDaemonRecord(paths) });
	const kept = { ...config.retention, auditDays: config.audit.keptDays };
	undo.push({
		what: "retention",
		stop: keepRetention(
			{ ...store, sweepFiles: () => parts.running.services.artifacts.sweep() },
			kept,
			systemClock,
			log,
		),
	});
	life.state = "READY";
	life.changed();
	const accounts = parts.outbound.accounts().map(({ channel, account }) => `${channel}/${account}`);
	const waiting = await waitingOf(parts.nex);
	const chats = accounts.length === 0 ? {} : { accounts, waiting: waiting.length };
	log.info({ ...ports, engine: engine.name, data: paths.dir, ...chats }, "ready");
	return {
		...ports,
		data: paths.dir,
		engine: engine.name,
		log,
		accounts,
		waiting,
		get state() {
			return stateOf(life, store, parts.broker);
		},
		get liveRuns() {
			return parts.broker.liveRuns().length;
		},
		get liveDeliveries() {
			return parts.outbound.live;
		},
		stopDeadlineMs: config.stopDeadlineMs,
		signInUrl: () => parts.edge.signInUrl(),
		flush() {
			// The Bus commits what the deliveries hand over.
			parts.outbound.flush();
			store.bus.flush();
		},
		close: () => stop(life),
	};
}

const waitingOf = async ({ pairing }: Nex) =>
	(await pairing.list())
		.filter(({ approvedAt, expiresAt }) => approvedAt === undefined && expiresAt > Date.now())
		.map(({ code, channel, account, sender, senderName }) => ({
			code,
			sender: `${senderName ?? sender} on ${channel}/${account}`,
		}));

const stateOf = (life: Life, store: Store, broker: Broker): DaemonState =>
	life.state === "READY" && (!store.bus.healthy || broker.unsaved > 0 || life.problem() !== undefined)
		? "DEGRADED"
		: life.state;

let isDebuggerShut = false;

/**
 * SIGUSR1 would make Node open its debugger, which any program of the same user could then run code through. A listener of our own replaces
 * Node's; it stays, because without any listener the signal would end the process.
 */
function keepDebuggerShut(log: Log): void {
	if (isDebuggerShut) return;
	isDebuggerShut = true;
	process.on("SIGUSR1", () => log.warn({}, "SIGUSR1 was ignored: to debug the daemon, start it with `node --inspect`"));
}

/** Takes down what was started; a part that fails to stop does not keep the others up. */
async function stop(life: Life): Promise<void> {
	if (life.state === "STOPPING" || life.state === "STOPPED") return;
	life.state = "STOPPING";
	// Before anybody is cut: it is the last thing that a reader of the health feed hears.
	life.changed();
	// Once the port is closed nothing else may hold the process: an engine that waits for nothing, and time limits that do not count.
	const awake = setInterval(() => {}, AWAKE_MS);
	for (let part = life.undo.pop(); part; part = life.undo.pop()) {
		try {
			await part.stop();
		} catch (cause) {
			life.log.error({ cause, part: part.what }, "a part did not stop cleanly");
		}
	}
	clearInterval(awake);
	life.state = "STOPPED";
}

const AWAKE_MS = 60_000;

interface DaemonParts {
	broker: Broker;
	edge: Edge;
	outbound: Outbound;
	nex: Nex;
	lab: { close(): Promise<void> };
	running: RunningServices;
}

/**
 * First nothing comes in any more, then runs end, then their answers go out: all within one deadline. Whoever follows a run stays until it has
 * ended, so what is aborted is aborted early enough for its end to be read (Z6).
 */
async function stopWork(parts: DaemonParts, { stopDeadlineMs, broker: { abortGraceMs } }: NexusConfig): Promise<void> {
	const { edge, broker, nex, outbound, lab, running } = parts;
	const end = performance.now() + stopDeadlineMs;
	const left = () => Math.max(0, end - performance.now());
	nex.close();
	await edge.stop();
	const drainMs = drainTime(stopDeadlineMs, abortGraceMs ?? BROKER_LIMITS.abortGraceMs);
	await Promise.all([broker.drain(drainMs), running.drain(drainMs, Math.max(0, left() - drainMs))]);
	await nex.stop(left());
	await Promise.all([outbound.stop(left()), lab.close(), edge.close(left())]);
	await running.close();
}

/** Of the time to stop, what runs have to end by themselves. */
const drainTime = (deadlineMs: number, graceMs: number): number =>
	Math.max(deadlineMs / 2, deadlineMs - graceMs - LAST_WORDS_MS);

/** For the ends of what was aborted to be read. */
const LAST_WORDS_MS = 1000;

interface Found {
	engine: Engine;
	engineServices: EngineServices;
	token: string;
	memory: MemoryPort;
	mcp: Mcp | undefined;
	tracing: Tracing | undefined;
}

function compose(life: Life, config: NexusConfig, store: Store, found: Found): DaemonParts {
	const { engine, engineServices, token, memory, mcp, tracing } = found;
	const { log } = life;
	const counts = new RunCounts();
	const { bus, ledger, rows } = store;
	const { to: _to, policy: _policy, prefixes: _prefixes, outside: _outside, ...asking } = config.approvals ?? {};
	const broker = createBroker({
		bus,
		ledger,
		engine,
		limits: config.broker,
		approvals: asking,
		log,
		execution: config.execution,
		observer: tracing ? both(counts, tracing) : counts,
	});
	const { adapters, inbound } = nexConfig(config);
	let idle = idleChannels(adapters);
	for (const channel of idle)
		log.warn({ channel }, `the adapter of ${channel} has no account, so it is not started; ${idleRemedy(channel)}`);
	const outbound = createOutbound({ bus, ledger, dataDir: config.data, adapters, log });
	const nex = createNex({
		broker,
		bus,
		ledger,
		outbound,
		engine,
		config: inbound,
		limits: config.broker,
		log,
		arrived: (message) => reportAttachments(running.services.artifacts.transfers, message, systemClock.now()),
	});
	const lab = createLab({ bus, receive: nex.receive, dataDir: config.data, tuned: adapters, clock: systemClock, log });
	const lock = createLock();
	const always = new AbortController().signal;
	/** The configuration file is read once; the accounts that were stored beside it may come and go. Whoever read them last has the last word. */
	const reload = async () => {
		const release = await lock(always);
		try {
			const next = nexConfig(config);
			const changes = await outbound.reconfigure(next.adapters);
			idle = idleChannels(next.adapters);
			nex.reconfigure(next.inbound, [...changes.added, ...changes.changed]);
			if (Object.values(changes).some((names) => names.length > 0)) {
				log.info(changes, "accounts were taken up or let go");
				services.audit.configured("accounts_changed", changedAccounts(changes));
			}
			return changes;
		} finally {
			release();
		}
	};
	const readiness = (): ReadinessJson => {
		const state = stateOf(life, store, broker);
		if (state === "DEGRADED") {
			const refused = "answers cannot be saved: see the log";
			const unhealthy = store.bus.healthy ? refused : "commits fail: is the disk full?";
			return { ready: false, state, detail: life.problem() ?? unhealthy };
		}
		return { ready: state === "READY", state };
	};
	const submit: EdgeDeps["submit"] = async (message) => {
		try {
			return await nex.receive(message);
		} catch (cause) {
			services.audit.messageRefused(message.session, cause);
			throw cause;
		}
	};
	const running = createServices({
		bus,
		ledger,
		rows,
		broker,
		engine,
		memory,
		config,
		nex,
		outbound,
		readiness,
		submit,
		clock: systemClock,
		log,
	});
	const { services } = running;
	life.changed = () => services.health.changed();
	services.audit.configured("started", startedWith(config, token, engine.name));
	const page = pageDir();
	const edge: Edge = createEdge({
		bus,
		ledger,
		broker,
		engine,
		submit,
		cancel: (eventId) => nex.cancel(eventId),
		approvals: nex.approvals,
		trust: nex.trust,
		proceed: (runId) => nex.continue(runId),
		retry: (runId) => nex.retry(runId),
		channels: { outbound, pairing: nex.pairing, lab, reload, idle: () => idle },
		token,
		apps: services.apps,
		signIns: services.signIns,
		limits: config.edge,
		allowedHosts: config.allowedHosts,
		trustedProxies: config.trustedProxies,
		log,
		version: packageVersion(),
		async methods() {
			const { methodsOf } = await import("./wiring/methods.ts");
			const { agents, memory: memoryConfig } = config;
			return methodsOf({ ...services, engine, agents, submit, broker, ledger, rows, memoryConfig });
		},
		artifacts: services.artifacts,
		deliverOnce: (request, begin) => once({ rows, clock: systemClock }, { ...request, appId: DELIVERIES }, begin),
		abortAsked: services.audit.abortAsked,
		health: stateFeed(services.health),
		readiness,
		metrics: lazyMetrics(() => ({
			bus,
			broker,
			nex,
			counts,
			edge: () => edge.stats(),
			counters: engineServices.counters,
		})),
		pageDir: page,
		mcp,
	});
	return { broker, edge, outbound, nex, lab, running };
}

/** Deliveries have their own idempotency keys: no application can be called so. */
const DELIVERIES = `${OWNER_APP}/deliveries`;

const both = (one: RunObserver, other: RunObserver): RunObserver => ({
	took(...said) {
		one.took(...said);
		other.took(...said);
	},
	settled(...said) {
		one.settled(...said);
		other.settled(...said);
	},
});

/** The library is loaded by the first scrape, not by the start. */
function lazyMetrics(source: () => MetricsSource) {
	const load = loadOnce(async () => (await import("./observe/metrics.ts")).createMetrics(source()));
	return {
		contentType: "text/plain; version=0.0.4; charset=utf-8",
		render: async () => (await load())(),
	};
}

async function findEngine(
	choice: EngineChoice | undefined,
	config: NexusConfig,
	engineServices: EngineServices,
): Promise<Engine> {
	return loadEngine(chooseEngine(choice, config, process.env), { base: config.base, config, services: engineServices });
}

const isEngine = (choice: EngineChoice | Engine | undefined): choice is Engine =>
	typeof choice === "object" && "run" in choice;
