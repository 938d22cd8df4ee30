/** Makes the parts of the daemon and connects them; nothing runs yet. */

import { createHmac } from "node:crypto";
import type { ReadinessJson } from "@nexus-stream/protocol/api";
import type { Engine } from "@nexus-stream/protocol/engine";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { Log } from "@nexus-stream/protocol/log";
import { type Broker, createBroker, type RunObserver } from "../broker/broker.ts";
import { createEdge, type Edge, type EdgeDeps, type HealthFeed } from "../edge/edge.ts";
import type { EngineServices, Mcp, MemoryPort } from "../engine/engine.ts";
import {
	type AccountChanges,
	type ChannelMessage,
	createNex,
	createOutbound,
	type Nex,
	type Outbound,
} from "../nex/nex.ts";
import type { Transfers } from "../services/artifacts/port.ts";
import type { AuditPayload } from "../services/audit/port.ts";
import type { RuntimeHealthFeed } from "../services/health/health.ts";
import { once } from "../services/kit/once.ts";
import { OWNER_APP } from "../services/kit/principal.ts";
import { loadOnce } from "../std/load-once.ts";
import { idleChannels, idleRemedy, nexConfig } from "./config/channels.ts";
import type { NexusConfig } from "./config/config.ts";
import type { Store } from "./data/store.ts";
import { createLab } from "./lab/lab.ts";
import type { MetricsSource } from "./observe/metrics.ts";
import { RunCounts } from "./observe/run-counts.ts";
import type { Tracing } from "./observe/tracing.ts";
import { packageVersion, pageDir } from "./package.ts";
import { createServices, type RunningServices } from "./wiring/services.ts";

export interface DaemonParts {
	broker: Broker;
	edge: Edge;
	outbound: Outbound;
	nex: Nex;
	lab: { close(): Promise<void> };
	running: RunningServices;
}

/** Opened by the start before the parts are made. */
export interface Opened {
	store: Store;
	engine: Engine;
	engineServices: EngineServices;
	token: string;
	memory: MemoryPort;
	mcp: Mcp | undefined;
	tracing: Tracing | undefined;
	log: Log;
	readiness(broker: Broker): ReadinessJson;
}

export function compose(config: NexusConfig, opened: Opened): DaemonParts {
	const { engine, token, memory, log } = opened;
	const { bus, ledger, rows, clock } = opened.store;
	const counts = new RunCounts();
	const broker = brokerOf(config, opened, counts);
	const { adapters, inbound } = nexConfig(config);
	const outbound = createOutbound({ bus, ledger, dataDir: config.data, adapters, clock, log });
	const core = { bus, ledger, broker, engine, outbound, clock, log };
	const nex = createNex({
		...core,
		config: inbound,
		limits: config.broker,
		arrived: (message) => reportAttachments(running.services.artifacts.transfers, message, clock.now()),
	});
	const lab = createLab({ bus, receive: nex.receive, dataDir: config.data, tuned: adapters, clock, log });
	const submit: EdgeDeps["submit"] = async (message) => {
		try {
			return await nex.receive(message);
		} catch (cause) {
			running.services.audit.messageRefused(message.session, cause);
			throw cause;
		}
	};
	const readiness = () => opened.readiness(broker);
	const running = createServices({ ...core, rows, memory, config, nex, readiness, submit });
	running.services.audit.configured("started", startedWith(config, token, engine.name));
	const parts = { broker, outbound, nex, lab, running };
	return { ...parts, edge: edgeOf(config, opened, { ...parts, submit, counts }) };
}

function brokerOf(config: NexusConfig, { store, engine, tracing, log }: Opened, counts: RunCounts): Broker {
	const { to: _to, policy: _policy, prefixes: _prefixes, outside: _outside, ...approvals } = config.approvals ?? {};
	return createBroker({
		...store,
		engine,
		limits: config.broker,
		approvals,
		log,
		execution: config.execution,
		observer: tracing ? both(counts, tracing) : counts,
	});
}

const both = (one: RunObserver, other: RunObserver): RunObserver => ({
	took(...events) {
		one.took(...events);
		other.took(...events);
	},
	settled(...facts) {
		one.settled(...facts);
		other.settled(...facts);
	},
});

/** Stored accounts, which may come and go while the daemon runs; the configuration file is read once. */
function reloadableAccounts(config: NexusConfig, log: Log, { outbound, nex, running }: Omit<DaemonParts, "edge">) {
	let idle = idleChannels(nexConfig(config).adapters);
	for (const channel of idle)
		log.warn({ channel }, `the adapter of ${channel} has no account, so it is not started; ${idleRemedy(channel)}`);
	const reload = async () => {
		const { adapters, inbound } = nexConfig(config);
		const changes = await outbound.reconfigure(adapters);
		idle = idleChannels(adapters);
		nex.reconfigure(inbound, [...changes.added, ...changes.changed]);
		if (Object.values(changes).some((names) => names.length > 0)) {
			log.info(changes, "accounts reloaded");
			running.services.audit.configured("accounts_changed", changedAccounts(changes));
		}
		return changes;
	};
	// One at a time, so that the accounts that were read last are used.
	const queue = createKeyedQueue();
	return { reload: () => queue.run("accounts", reload), idle: () => idle };
}

/** Deliveries have their own idempotency keys: no application can be called so. */
const DELIVERIES = `${OWNER_APP}/deliveries`;

interface EdgeParts extends Omit<DaemonParts, "edge" | "lab"> {
	lab: ReturnType<typeof createLab>;
	submit: EdgeDeps["submit"];
	counts: RunCounts;
}

function edgeOf(config: NexusConfig, opened: Opened, parts: EdgeParts): Edge {
	const { store, engine, engineServices, token, mcp, log } = opened;
	const { bus, ledger, rows, clock } = store;
	const { broker, nex, outbound, lab, submit, counts } = parts;
	const { services } = parts.running;
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
		channels: { outbound, pairing: nex.pairing, lab, ...reloadableAccounts(config, log, parts) },
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
		deliverOnce: (request, begin) => once({ rows, clock }, { ...request, appId: DELIVERIES }, begin),
		abortAsked: services.audit.abortAsked,
		health: stateFeed(services.health),
		readiness: () => opened.readiness(broker),
		metrics: lazyMetrics(() => ({
			bus,
			broker,
			nex,
			counts,
			edge: () => edge.stats(),
			counters: engineServices.counters,
		})),
		pageDir: pageDir(),
		clock,
		mcp: mcp ?? { status: () => [], start: async () => {} },
	});
	return edge;
}

/** The library is loaded by the first scrape, not by the start. */
function lazyMetrics(source: () => MetricsSource) {
	const load = loadOnce(async () => (await import("./observe/metrics.ts")).createMetrics(source()));
	return { contentType: "text/plain; version=0.0.4; charset=utf-8", render: async () => (await load())() };
}

/** The daemon's state alone, for readers who ask only whether it serves. A store that refuses commits raises no event: samples detect it, and they are taken only while a listener is subscribed. */
export const stateFeed = (health: RuntimeHealthFeed): HealthFeed => ({
	state: () => health.current().status,
	subscribe(listener) {
		let last = health.current().status;
		return health.subscribe(({ status }) => {
			if (status === last) return;
			last = status;
			listener(status);
		});
	},
});

/** Two starts with the same digest had the same configuration. Keyed with the token, so that a short secret cannot be guessed from it. */
const startedWith = (config: NexusConfig, token: string, engine: string): AuditPayload => ({
	version: packageVersion(),
	engine,
	config_digest: createHmac("sha256", token).update(JSON.stringify(config)).digest("hex").slice(0, 32),
});

function changedAccounts(changes: AccountChanges): AuditPayload {
	const names = (accounts: AccountChanges["added"]) => accounts.map(({ channel, id }) => `${channel}/${id}`).join(" ");
	return { added: names(changes.added), changed: names(changes.changed), removed: names(changes.removed) };
}

/** Reports the attachments of a platform's message as transfers: its adapter has fetched them. */
export function reportAttachments(
	transfers: Pick<Transfers, "report">,
	{ channel, account, message: { eventId, attachments = [] } }: ChannelMessage,
	now: number,
): void {
	for (const [n, { name, data }] of attachments.entries()) {
		const bytes = Buffer.byteLength(data, "base64");
		transfers.report({
			id: ["attachment", channel, account, eventId, n].join("/"),
			appId: OWNER_APP,
			kind: "attachment",
			state: "completed",
			name,
			transferredBytes: bytes,
			totalBytes: bytes,
			startedAt: now,
			updatedAt: now,
		});
	}
}
