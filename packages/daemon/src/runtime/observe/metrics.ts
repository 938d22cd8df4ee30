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
	/** The engine's counters; undefined when it counts nothing. */
	counters: Counters | undefined;
	counts: RunCounts;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

interface Metric {
	name: string;
	help: string;
	labels: readonly string[];
	/** The parts count for themselves: a metric only repeats their total. */
	read(): readonly Sample[];
}

const byLabel = (name: string, help: string, labels: readonly string[], read: Metric["read"]): Metric => {
	return { name, help, labels, read };
};

const one = (name: string, help: string, read: () => number): Metric => byLabel(name, help, [], () => [[{}, read()]]);

/** Gives the function that renders one scrape. */
export function createMetrics(source: MetricsSource): () => Promise<string> {
	const registry = new Registry();
	const register = (Kind: typeof Counter | typeof Gauge, metrics: readonly Metric[]) => {
		for (const { name, help, labels: labelNames, read } of metrics)
			new Kind({
				name,
				help,
				labelNames,
				registers: [registry],
				collect() {
					this.reset();
					for (const [labels, value] of read()) this.inc(labels, value);
				},
			});
	};
	register(Counter, [...totals(source), ...edgeTotals(source)]);
	register(Gauge, [...levels(source), ...processLevels()]);
	return () => registry.metrics();
}

function totals({ bus, broker, nex, counts, counters }: MetricsSource): Metric[] {
	const engine = (counter: string, help: string, labels: readonly string[]) =>
		byLabel(`nexus_${counter}_total`, help, labels, () =>
			(counters?.read() ?? []).flatMap((each) =>
				each.counter === counter ? [[each.labels, each.value] as const] : [],
			),
		);
	return [
		engine("model_calls", "Model calls by agent and how they ended", ["agent", "outcome"]),
		engine("model_ms", "Milliseconds that models took", ["agent"]),
		engine("agent_attempts", "Attempts by agent and what came of them", ["agent", "outcome"]),
		one("nexus_records_total", "Records made durable since start", () => bus.stats.records),
		one("nexus_record_bytes_total", "Bytes of those records", () => bus.stats.bytes),
		one("nexus_commits_total", "Transactions since start", () => bus.stats.commits),
		byLabel("nexus_runs_total", "Runs settled since start, by how they ended", ["status"], () =>
			Object.entries(broker.settled).map(([status, count]) => [{ status }, count]),
		),
		// The first hundred names have a label of their own.
		byLabel(
			"nexus_tools_total",
			"Tool calls of all engines since start, by tool and how they ended",
			["tool", "outcome"],
			() =>
				[...counts.tools].flatMap(([tool, { completed, failed }]) => [
					[{ tool, outcome: "completed" }, completed],
					[{ tool, outcome: "failed" }, failed],
				]),
		),
		byLabel("nexus_tool_seconds_total", "Time that these took", ["tool"], () =>
			[...counts.tools].map(([tool, { ms }]) => [{ tool }, ms / 1000]),
		),
		byLabel("nexus_approvals_total", "Approvals since start, by what became of them", ["state"], () =>
			Object.entries(counts.approvals).map(([state, count]) => [{ state }, count]),
		),
		byLabel(
			"nexus_messages_total",
			"Messages since start: received, of these delivered again by a platform, and refused",
			["what"],
			() => {
				const { received, duplicates, rejected } = nex.stats();
				return [
					[{ what: "received" }, received],
					[{ what: "duplicate" }, duplicates],
					[{ what: "rejected" }, rejected],
				];
			},
		),
		byLabel("nexus_plugin_calls_total", "Calls of plugins since start, by how they ended", ["plugin", "outcome"], () =>
			nex.stats().plugins.flatMap(({ name: plugin, calls, failures, timeouts, rejections }) => [
				[{ plugin, outcome: "ok" }, Math.max(0, calls - failures - timeouts - rejections)],
				[{ plugin, outcome: "failed" }, failures],
				[{ plugin, outcome: "timeout" }, timeouts],
				[{ plugin, outcome: "rejected" }, rejections],
			]),
		),
		one("process_cpu_seconds_total", "CPU time", () => {
			const { user, system } = process.cpuUsage();
			return (user + system) / 1e6;
		}),
	];
}

const edgeTotals = ({ edge }: MetricsSource): Metric[] => [
	one("nexus_http_requests_total", "Requests since start", () => edge().requests),
	one("nexus_stalled_readers_total", "Readers cut off because they took nothing", () => edge().stalledReaders),
	one(
		"nexus_flushes_deferred_total",
		"Writes to the readers of a log that were put off because the event loop was busy",
		() => edge().deferredFlushes,
	),
	one(
		"nexus_token_failures_total",
		"Requests and sign-ins whose token or code is not good",
		() => edge().tokenFailures,
	),
	one(
		"nexus_tokenless_refused_total",
		"Requests, calls and connections without a token that were cut or refused",
		() => edge().tokenlessRefused,
	),
];

const levels = ({ bus, broker, edge }: MetricsSource): Metric[] => [
	one("nexus_live_logs", "Logs that are not sealed", () => bus.stats.liveLogs),
	one("nexus_cursors", "Readers of logs", () => bus.stats.cursors),
	one("nexus_runs_live", "Runs that have not settled", () => broker.liveRuns().length),
	one("nexus_healthy", "1 while commits succeed", () => (bus.healthy ? 1 : 0)),
	one(
		"nexus_flush_spacing_seconds",
		"How far apart the writes to the readers of one log are; 0 = at once",
		() => edge().flushSpacingMs / 1000,
	),
	one("nexus_http_connections", "Open connections", () => edge().connections),
	one("nexus_grpc_connections", "Open connections to the gRPC port", () => edge().grpcConnections),
	byLabel("nexus_streams_open", "Readers connected now, by wire", ["wire"], () => {
		const { sseReaders, webSockets, subscriptions, grpcStreams } = edge();
		return [
			[{ wire: "sse" }, sseReaders],
			[{ wire: "websocket" }, webSockets],
			[{ wire: "websocket_subscription" }, subscriptions],
			[{ wire: "grpc" }, grpcStreams],
		];
	}),
];

const NANOSECONDS_PER_SECOND = 1e9;
const LOOP_SAMPLE_MS = 20;

function processLevels(): Metric[] {
	const delay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MS });
	delay.enable();
	return [
		one("nexus_uptime_seconds", "Seconds since start", () => process.uptime()),
		one("nexus_event_loop_delay_p99_seconds", "Beyond the time that was asked for, since the last scrape", () => {
			// The monitor records the whole way from one sample to the next; without a sample its number means nothing.
			const late = delay.count === 0 ? 0 : delay.percentile(99) / NANOSECONDS_PER_SECOND - LOOP_SAMPLE_MS / 1000;
			delay.reset();
			return Math.max(0, late);
		}),
		one("process_resident_memory_bytes", "Resident memory", () => process.memoryUsage.rss()),
		one("process_heap_bytes", "Used heap", () => process.memoryUsage().heapUsed),
	];
}
