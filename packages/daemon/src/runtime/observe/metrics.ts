/** The answer of `/metrics`, in Prometheus' text form. It reads the parts on request, so that the way of a token pays nothing. */

import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Registry } from "prom-client";
import type { Broker } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { EdgeStats } from "../../edge/edge.ts";
import type { Nex } from "../../nex/nex.ts";
import type { Counters } from "../../std/counters.ts";
import type { RunCounts } from "./run-counts.ts";

export interface MetricsSource {
	bus: Bus;
	broker: Broker;
	edge(): EdgeStats;
	nex: Pick<Nex, "stats">;
	/** The engine's counters; left out when it counts nothing. */
	counters?: Counters | undefined;
	counts: RunCounts;
}

/** By name: the labels of what engines count. */
const ENGINE_COUNTERS = {
	model_calls: { help: "Model calls by agent and how they ended", labels: ["agent", "outcome"] },
	model_ms: { help: "Milliseconds that models took", labels: ["agent"] },
	agent_attempts: { help: "Attempts by agent and what came of them", labels: ["agent", "outcome"] },
};

const NANOSECONDS_PER_SECOND = 1e9;
const LOOP_SAMPLE_MS = 20;

/** Gives the function that renders one scrape. */
export function createMetrics(source: MetricsSource): () => Promise<string> {
	const { bus, broker } = source;
	const registry = new Registry();
	const gauge = (name: string, help: string, read: () => number) =>
		new Gauge({
			name,
			help,
			registers: [registry],
			collect() {
				this.set(read());
			},
		});
	/** The parts count for themselves; a counter here only repeats their total. */
	const counter = (name: string, help: string, read: () => number) =>
		new Counter({
			name,
			help,
			registers: [registry],
			collect() {
				this.reset();
				this.inc(read());
			},
		});
	for (const [name, { help, labels }] of Object.entries(ENGINE_COUNTERS))
		new Counter({
			name: `nexus_${name}_total`,
			help,
			labelNames: labels,
			registers: [registry],
			collect() {
				this.reset();
				for (const one of source.counters?.read() ?? []) if (one.counter === name) this.inc(one.labels, one.value);
			},
		});
	counter("nexus_records_total", "Records made durable since start", () => bus.stats.records);
	counter("nexus_record_bytes_total", "Bytes of those records", () => bus.stats.bytes);
	counter("nexus_commits_total", "Transactions since start", () => bus.stats.commits);
	gauge("nexus_live_logs", "Logs that are not sealed", () => bus.stats.liveLogs);
	gauge("nexus_cursors", "Readers of logs", () => bus.stats.cursors);
	gauge("nexus_runs_live", "Runs that have not settled", () => broker.liveRuns().length);
	gauge("nexus_healthy", "1 while commits succeed", () => (bus.healthy ? 1 : 0));
	gauge("nexus_uptime_seconds", "Seconds since start", () => process.uptime());
	counter("process_cpu_seconds_total", "CPU time", () => {
		const { user, system } = process.cpuUsage();
		return (user + system) / 1e6;
	});
	counter("nexus_http_requests_total", "Requests since start", () => source.edge().requests);
	counter(
		"nexus_stalled_readers_total",
		"Readers cut off because they took nothing",
		() => source.edge().stalledReaders,
	);
	gauge(
		"nexus_flush_spacing_seconds",
		"How far apart the writes to the readers of one log are; 0 = at once",
		() => source.edge().flushSpacingMs / 1000,
	);
	counter(
		"nexus_flushes_deferred_total",
		"Writes to the readers of a log that were put off because the event loop was busy",
		() => source.edge().deferredFlushes,
	);
	counter(
		"nexus_token_failures_total",
		"Requests and sign-ins whose token or code is not good",
		() => source.edge().tokenFailures,
	);
	counter(
		"nexus_tokenless_refused_total",
		"Requests, calls and connections without a token that were cut or refused",
		() => source.edge().tokenlessRefused,
	);
	gauge("nexus_http_connections", "Open connections", () => source.edge().connections);
	gauge("nexus_grpc_connections", "Open connections to the gRPC port", () => source.edge().grpcConnections);
	runsByStatus(registry, source);
	tools(registry, source);
	approvals(registry, source);
	openStreams(registry, source);
	inboundMessages(registry, source);
	pluginCalls(registry, source);
	processGauges(gauge);
	return () => registry.metrics();
}

/** The first hundred names have a label of their own. */
function tools(registry: Registry, { counts }: MetricsSource): void {
	new Counter({
		name: "nexus_tools_total",
		help: "Tool calls of all engines since start, by tool and how they ended",
		labelNames: ["tool", "outcome"],
		registers: [registry],
		collect() {
			this.reset();
			for (const [tool, { completed, failed }] of counts.tools) {
				this.inc({ tool, outcome: "completed" }, completed);
				this.inc({ tool, outcome: "failed" }, failed);
			}
		},
	});
	new Counter({
		name: "nexus_tool_seconds_total",
		help: "Time that these took",
		labelNames: ["tool"],
		registers: [registry],
		collect() {
			this.reset();
			for (const [tool, { ms }] of counts.tools) this.inc({ tool }, ms / 1000);
		},
	});
}

function approvals(registry: Registry, { counts }: MetricsSource): void {
	new Counter({
		name: "nexus_approvals_total",
		help: "Approvals since start, by what became of them",
		labelNames: ["state"],
		registers: [registry],
		collect() {
			this.reset();
			for (const [state, count] of Object.entries(counts.approvals)) this.inc({ state }, count);
		},
	});
}

function runsByStatus(registry: Registry, source: MetricsSource): void {
	new Counter({
		name: "nexus_runs_total",
		help: "Runs settled since start, by how they ended",
		labelNames: ["status"],
		registers: [registry],
		collect() {
			this.reset();
			for (const [status, count] of Object.entries(source.broker.settled)) this.inc({ status }, count);
		},
	});
}

function inboundMessages(registry: Registry, { nex }: MetricsSource): void {
	new Counter({
		name: "nexus_messages_total",
		help: "Messages since start: received, of these delivered again by a platform, and refused",
		labelNames: ["what"],
		registers: [registry],
		collect() {
			this.reset();
			const { received, duplicates, rejected } = nex.stats();
			this.inc({ what: "received" }, received);
			this.inc({ what: "duplicate" }, duplicates);
			this.inc({ what: "rejected" }, rejected);
		},
	});
}

function pluginCalls(registry: Registry, { nex }: MetricsSource): void {
	new Counter({
		name: "nexus_plugin_calls_total",
		help: "Calls of plugins since start, by how they ended",
		labelNames: ["plugin", "outcome"],
		registers: [registry],
		collect() {
			this.reset();
			for (const { name: plugin, calls, failures, timeouts, rejections } of nex.stats().plugins) {
				this.inc({ plugin, outcome: "ok" }, Math.max(0, calls - failures - timeouts - rejections));
				this.inc({ plugin, outcome: "failed" }, failures);
				this.inc({ plugin, outcome: "timeout" }, timeouts);
				this.inc({ plugin, outcome: "rejected" }, rejections);
			}
		},
	});
}

function openStreams(registry: Registry, source: MetricsSource): void {
	new Gauge({
		name: "nexus_streams_open",
		help: "Readers connected now, by wire",
		labelNames: ["wire"],
		registers: [registry],
		collect() {
			const { sseReaders, webSockets, subscriptions, grpcStreams } = source.edge();
			this.set({ wire: "sse" }, sseReaders);
			this.set({ wire: "websocket" }, webSockets);
			this.set({ wire: "websocket_subscription" }, subscriptions);
			this.set({ wire: "grpc" }, grpcStreams);
		},
	});
}

function processGauges(gauge: (name: string, help: string, read: () => number) => unknown): void {
	const delay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MS });
	delay.enable();
	gauge("nexus_event_loop_delay_p99_seconds", "Beyond the time that was asked for, since the last scrape", () => {
		// The monitor records the whole way from one sample to the next; without a sample its number means nothing.
		const late = delay.count === 0 ? 0 : delay.percentile(99) / NANOSECONDS_PER_SECOND - LOOP_SAMPLE_MS / 1000;
		delay.reset();
		return Math.max(0, late);
	});
	gauge("process_resident_memory_bytes", "Resident memory", () => process.memoryUsage.rss());
	gauge("process_heap_bytes", "Used heap", () => process.memoryUsage().heapUsed);
}
