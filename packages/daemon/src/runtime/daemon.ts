/** The daemon's life: starts the parts in the one safe order, and stops them in the reverse. */

import { NexusError } from "@nexus-stream/protocol";
import type { DaemonState, ReadinessJson } from "@nexus-stream/protocol/api";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import { BROKER_LIMITS, type Broker } from "../broker/broker.ts";
import { chooseEngine, type EngineChoice, loadEngine } from "../engine/engine.ts";
import type { Nex } from "../nex/nex.ts";
import { createMemory } from "../services/memory/memory.ts";
import { keepTakingOver, leaseProblem, whenReplaced } from "./cluster.ts";
import { compose, type DaemonParts } from "./compose.ts";
import { completeConfig, type NexusConfig, type PartialConfig, requireTokenOnPublicHost } from "./config/config.ts";
import { daemonToken, prepareDataDir, removeDaemonRecord, writeDaemonRecord } from "./data/data-dir.ts";
import { lockDataDir } from "./data/data-lock.ts";
import { openStore, type Store } from "./data/store.ts";
import { openGrpcPort } from "./grpc.ts";
import { createLogger } from "./observe/logger.ts";
import { openTracing, tracingConfig } from "./observe/tracing.ts";
import { packageVersion } from "./package.ts";
import { keepRetention } from "./retention.ts";
import { Starting } from "./starting.ts";
import { createEngineServices, openMcp } from "./wiring/engine-services.ts";

/** A configuration, or what a program that embeds the daemon hands over instead. */
export type DaemonOptions = Omit<PartialConfig, "engine"> & {
	engine?: EngineChoice | Engine | undefined;
	logger?: Log | undefined;
	/** The configuration in one object; the other options override it. */
	config?: PartialConfig | undefined;
	/** A database file that other daemons use at the same time, each with a separate data directory. Default: a file that this one has alone. */
	sharedStore?: string | undefined;
};

export interface Daemon {
	readonly url: string;
	/** The gRPC address as `http://host:port` or `https://host:port`; undefined when it is off. */
	readonly grpc?: string;
	readonly data: string;
	readonly engine: string;
	readonly state: DaemonState;
	/** Runs that have not settled. */
	readonly liveRuns: number;
	/** Deliveries that are under way or wait for their turn. */
	readonly liveDeliveries: number;
	/** How long `close` waits for both. */
	readonly stopDeadlineMs: number;
	readonly log: Log;
	/** On chat platforms, as `channel/account`, when it started. */
	readonly accounts: readonly string[];
	/** Pairing requests that were open when it started. */
	readonly waiting: readonly { code: string; sender: string }[];
	/** Resolves when other daemons have declared this one dead: it has to be closed, and started again. */
	readonly replaced: Promise<void>;
	/** A fresh address that signs the page in, once. */
	signInUrl(): string;
	/** Commits what is pending, in the tick of the call: for a process that has to end. */
	flush(): void;
	/** Stops accepting, lets runs end until the deadline, saves what is left as aborted, lets go of the data directory. */
	close(): Promise<void>;
}

/** Everything that was started, newest last: undone in the reverse order. */
type Undo = { what: string; stop: () => void | Promise<void> }[];

interface Life {
	state: DaemonState;
	/** Notifies the readers of the health feed. */
	changed(): void;
	readonly log: Log;
	readonly undo: Undo;
	/** Why nothing can be saved, whatever the store says. */
	problem(): string | undefined;
}

export async function startDaemon(options: DaemonOptions = {}): Promise<Daemon> {
	const { config: whole = {}, logger, sharedStore, ...given } = options;
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
		return await start(life, config, engine, sharedStore);
	} catch (cause) {
		await stop(life);
		throw cause;
	}
}

async function start(
	life: Life,
	config: NexusConfig,
	choice: EngineChoice | Engine | undefined,
	sharedStore: string | undefined,
): Promise<Daemon> {
	const { log, undo } = life;
	requireTokenOnPublicHost(config);
	keepDebuggerShut(log);
	const starting = new Starting({ ...config, clock: systemClock, log });
	undo.push({ what: "answers during the start", stop: () => starting.end() });
	const { paths, store, token } = await openData(life, config, starting, sharedStore);
	const memory = createMemory({ ...store, config: config.memory });
	const mcp = openMcp(config, log);
	undo.push({ what: "MCP servers", stop: () => mcp?.close() });
	const engineServices = createEngineServices(config, log, { memory, mcp });
	const context = { base: config.base, config, services: engineServices };
	const engine = isEngine(choice) ? choice : await loadEngine(chooseEngine(choice, config, process.env), context);
	undo.push({ what: "engine", stop: () => engine.close?.() });
	const otel = tracingConfig(config.otel, process.env);
	const outbound = () => parts.outbound;
	const tracing = otel && (await openTracing(otel, { outbound, version: packageVersion(), log }));
	undo.push({ what: "spans", stop: () => tracing?.close() });
	const readiness = (broker: Broker) => readinessOf(life, store, broker);
	const opened = { store, engine, engineServices, token, memory, mcp, tracing, log, readiness };
	const parts: DaemonParts = compose(config, opened);
	life.changed = () => parts.running.services.health.changed();
	undo.push({ what: "work", stop: () => stopWork(parts, config) });
	await resumeWork(parts, log);
	if (store.bus.isShared) undo.push({ what: "recovery", stop: keepTakingOver(store, parts, log) });
	await starting.end();
	const { url } = await parts.edge.listen(config.host, config.port);
	const grpc = await openGrpcPort(parts.edge, config, Number(new URL(url).port), log);
	const record = { pid: process.pid, url, grpc, started_at: Date.now() };
	await starting.whenWritable(() => writeDaemonRecord(paths, record));
	undo.push({ what: "daemon record", stop: () => removeDaemonRecord(paths) });
	const swept = { ...store, sweepFiles: () => parts.running.services.artifacts.sweep() };
	const kept = { ...config.retention, auditDays: config.audit.keptDays };
	undo.push({ what: "retention", stop: keepRetention(swept, kept, store.clock, log) });
	life.state = "READY";
	life.changed();
	return await daemonOf(life, config, store, parts, { url, grpc, data: paths.dir, engine: engine.name });
}

/** Locks and opens the data directory. */
async function openData(life: Life, config: NexusConfig, starting: Starting, sharedStore: string | undefined) {
	const { log, undo } = life;
	const isEmbedded = config.store?.postgres === undefined;
	const paths = await starting.whenWritable(() => prepareDataDir(config.data, isEmbedded));
	const lock = await starting.whenWritable(() => lockDataDir(paths));
	undo.push({ what: "lock", stop: () => lock.release() });
	// The process that wrote it is gone: the lock is ours.
	removeDaemonRecord(paths);
	const guard = () => {
		const problem = lock.problem();
		if (problem !== undefined) throw new NexusError("unavailable", problem);
	};
	const path = sharedStore ?? paths.db;
	const options = { ...config, ...config.cluster, isShared: sharedStore !== undefined };
	const store = await starting.whenWritable(() => openStore(path, options, log, guard));
	starting.opened(() => store.bus.healthy);
	undo.push({ what: "store", stop: () => store.close() });
	await starting.whenWritable(() => lock.settle(log, isEmbedded));
	life.problem = () => lock.problem();
	const token = await starting.whenWritable(() => daemonToken(paths, config.token));
	return { paths, store, token };
}

/** Plugins must be loaded before a queued message becomes a run; pending deliveries resume before newer messages are answered. */
async function resumeWork({ nex, outbound, running }: DaemonParts, log: Log): Promise<void> {
	await nex.load();
	const { recovered } = await nex.recover(() => outbound.start());
	if (recovered > 0) log.warn({ recovered }, "settled runs that an earlier process left behind");
	await running.recover();
	nex.start();
}

type Facts = Pick<Daemon, "url" | "grpc" | "data" | "engine">;

async function daemonOf(
	life: Life,
	config: NexusConfig,
	store: Store,
	{ nex, outbound, broker, edge }: DaemonParts,
	facts: Facts,
): Promise<Daemon> {
	const { log } = life;
	const accounts = outbound.accounts().map(({ channel, account }) => `${channel}/${account}`);
	const waiting = await waitingOf(nex, store.clock.now());
	const chats = accounts.length === 0 ? {} : { accounts, waiting: waiting.length };
	log.info({ ...facts, ...chats }, "ready");
	return {
		...facts,
		log,
		accounts,
		waiting,
		get state() {
			return stateOf(life, store, broker);
		},
		get liveRuns() {
			return broker.liveRuns().length;
		},
		get liveDeliveries() {
			return outbound.live;
		},
		stopDeadlineMs: config.stopDeadlineMs,
		replaced: whenReplaced(store, { nex, broker }, log),
		signInUrl: () => edge.signInUrl(),
		flush() {
			// The Bus commits what the deliveries hand over.
			outbound.flush();
			store.bus.flush();
		},
		close: () => stop(life),
	};
}

const waitingOf = async ({ pairing }: Nex, now: number) =>
	(await pairing.list())
		.filter(({ approvedAt, expiresAt }) => approvedAt === undefined && expiresAt > now)
		.map(({ code, channel, account, sender, senderName }) => ({
			code,
			sender: `${senderName ?? sender} on ${channel}/${account}`,
		}));

const stateOf = (life: Life, store: Store, broker: Broker): DaemonState =>
	life.state === "READY" && (!store.bus.healthy || broker.unsaved > 0 || problemOf(life, store) !== undefined)
		? "DEGRADED"
		: life.state;

const problemOf = (life: Life, { bus }: Store): string | undefined => life.problem() ?? leaseProblem(bus);

function readinessOf(life: Life, store: Store, broker: Broker): ReadinessJson {
	const state = stateOf(life, store, broker);
	if (state !== "DEGRADED") return { ready: state === "READY", state };
	const unhealthy = store.bus.healthy ? "answers cannot be saved: see the log" : store.trouble;
	return { ready: false, state, detail: problemOf(life, store) ?? unhealthy };
}

let isDebuggerShut = false;

/**
 * SIGUSR1 would make Node open its debugger, which any program of the same user could then run code through. Our listener replaces
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
	// Before any connection is cut: it is the last event of the health feed.
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

/**
 * First nothing comes in any more, then runs end, then their answers go out: all within one deadline. A reader of a run stays until it has
 * ended, so what is aborted is aborted early enough for its end to be read (Z6).
 */
async function stopWork(parts: DaemonParts, { stopDeadlineMs, broker: { abortGraceMs } }: NexusConfig): Promise<void> {
	const { edge, broker, nex, outbound, lab, running } = parts;
	const end = performance.now() + stopDeadlineMs;
	const left = () => Math.max(0, end - performance.now());
	nex.close();
	await edge.stop();
	// The share of the deadline in which runs may end by themselves.
	const graceMs = abortGraceMs ?? BROKER_LIMITS.abortGraceMs;
	const drainMs = Math.max(stopDeadlineMs / 2, stopDeadlineMs - graceMs - LAST_WORDS_MS);
	await Promise.all([broker.drain(drainMs), running.drain(drainMs, Math.max(0, left() - drainMs))]);
	await nex.stop(left());
	await Promise.all([outbound.stop(left()), lab.close(), edge.close(left())]);
	await running.close();
}

/** For the ends of what was aborted to be read. */
const LAST_WORDS_MS = 1000;

const isEngine = (choice: EngineChoice | Engine | undefined): choice is Engine =>
	typeof choice === "object" && "run" in choice;
