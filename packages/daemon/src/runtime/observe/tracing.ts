/** Spans of runs, model calls, tools and deliveries, for an OTLP receiver. They are made when a run has settled, so that no run waits for them. */

import { wordsOf } from "@nexus-stream/protocol";
import { type Clock, systemClock, within } from "@nexus-stream/protocol/clock";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { RunObserver } from "../../broker/broker.ts";
import type { Delivery } from "../../ledger/deliveries/port.ts";
import type { Turn } from "../../ledger/turns/port.ts";
import type { Outbound } from "../../nex/nex.ts";
import type { Exported, SpanFacts } from "./otlp.ts";

export interface TracingConfig {
	/** The receiver; `/v1/traces` is added where it is missing. */
	endpoint: string;
	/** Prompts, arguments and results are in the spans, too. */
	arguments?: boolean;
	/** How long the end of the daemon waits for the receiver. */
	flushMs?: number;
}

export interface Tracing extends RunObserver {
	/** Sends what is left, within the limit. */
	close(): Promise<void>;
}

export interface TracingParts {
	outbound(): Pick<Outbound, "deliveries" | "settled">;
	version: string;
	log: Log;
	clock?: Clock;
}

const FLUSH_MS = 2000;
const MODEL_CALLS_MAX = 256;
/** Bounded: a run that never settles, because the store gave it up, must not stay in memory. */
const RUNS_MAX = 10_000;
const DELIVERIES_MAX = 64;

interface TracedModelCall {
	at: number;
	ms: number;
	agent?: string;
	failed: boolean;
	text: string;
	tokens?: number;
}

/** The configured endpoint, else the one of the environment; undefined: there are no spans. */
export function tracingConfig(
	otel: Partial<TracingConfig> | undefined,
	env: Readonly<Record<string, string | undefined>>,
): TracingConfig | undefined {
	const endpoint = otel?.endpoint ?? (env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined);
	return endpoint === undefined ? undefined : { ...otel, endpoint };
}

/** Loads the libraries: call it only when there is an endpoint. */
export async function openTracing(config: TracingConfig, parts: TracingParts): Promise<Tracing> {
	const { openExporter } = await import("./otlp.ts");
	const { version, log, clock = systemClock } = parts;
	const exporter = openExporter({ endpoint: config.endpoint, version, log });
	return new RunTracing(exporter, config, { ...parts, clock });
}

class RunTracing implements Tracing {
	readonly #exporter: Exported;
	readonly #config: TracingConfig;
	readonly #parts: TracingParts & { clock: Clock };
	readonly #models = new Map<string, TracedModelCall[]>();
	readonly #pending = new Set<Promise<void>>();

	constructor(exporter: Exported, config: TracingConfig, parts: TracingParts & { clock: Clock }) {
		this.#exporter = exporter;
		this.#config = config;
		this.#parts = parts;
	}

	took(runId: string, event: EngineEvent, at: number): void {
		if (event.type !== "log" || event.entry.kind !== "model") return;
		const calls = this.#models.get(runId) ?? this.#kept(runId);
		if (calls.length < MODEL_CALLS_MAX) calls.push(modelCall(event.entry, at));
	}

	settled(turn: Turn, traceId: string): void {
		const calls = this.#models.get(turn.runId) ?? [];
		this.#models.delete(turn.runId);
		const work = this.#trace(turn, traceId, calls)
			.catch((cause: unknown) =>
				this.#parts.log.warn({ runId: turn.runId, error: wordsOf(cause) }, "a run could not be traced"),
			)
			.finally(() => this.#pending.delete(work));
		this.#pending.add(work);
	}

	async close(): Promise<void> {
		const { flushMs = FLUSH_MS } = this.#config;
		const { clock, log } = this.#parts;
		// A delivery that resumes after a restart gets its span then.
		await within(clock, flushMs / 2, Promise.all(this.#pending));
		if (!(await within(clock, flushMs / 2, this.#exporter.close())))
			log.warn({ flushMs }, "the OTLP receiver did not take the last spans in time");
	}

	#kept(runId: string): TracedModelCall[] {
		const oldest = this.#models.size >= RUNS_MAX ? this.#models.keys().next().value : undefined;
		if (oldest !== undefined) this.#models.delete(oldest);
		const calls: TracedModelCall[] = [];
		this.#models.set(runId, calls);
		return calls;
	}

	async #trace(turn: Turn, traceId: string, calls: readonly TracedModelCall[]): Promise<void> {
		// The caller that waits for the run is answered first.
		await new Promise((resolve) => setImmediate(resolve));
		const shown = this.#config.arguments === true;
		const run = this.#exporter.span(runSpan(turn, shown), { traceId });
		for (const call of calls) this.#exporter.span(modelSpan(call), run);
		for (const call of turn.toolCalls) this.#exporter.span(toolSpan(call, shown), run);
		const outbound = this.#parts.outbound();
		const deliveries = await outbound.deliveries({ runId: turn.runId, limit: DELIVERIES_MAX });
		await Promise.all(
			deliveries.map(async ({ id }) => this.#exporter.span(deliverySpan(await outbound.settled(id)), run)),
		);
	}
}

function modelCall({ agent, text, data }: Extract<EngineEvent, { type: "log" }>["entry"], at: number): TracedModelCall {
	return {
		at,
		ms: typeof data?.ms === "number" && data.ms >= 0 ? data.ms : 0,
		failed: data?.failed === true,
		text,
		agent,
		tokens: typeof data?.tokens === "number" ? data.tokens : undefined,
	};
}

function runSpan(turn: Turn, shown: boolean): SpanFacts {
	const { runId, session, engine, status, reason, error, usage, firstTokenMs, continues } = turn;
	const asked = turn.messages.findLast(({ role }) => role === "user")?.text;
	return {
		name: "run",
		startedAt: turn.startedAt,
		endedAt: turn.endedAt,
		failed: status === "failed" ? (error?.code ?? reason) : undefined,
		attributes: {
			"nexus.run_id": runId,
			"nexus.session": session,
			"nexus.engine": engine,
			"nexus.status": status,
			"nexus.reason": reason,
			"gen_ai.usage.input_tokens": usage.input,
			"gen_ai.usage.output_tokens": usage.output,
			...(firstTokenMs !== undefined && { "nexus.first_token_ms": firstTokenMs }),
			...(continues !== undefined && { "nexus.continues": continues }),
			...(shown && asked !== undefined && { "nexus.prompt": asked }),
			...(shown && error && { "nexus.error": error.message }),
		},
	};
}

const modelSpan = ({ at, ms, agent, failed, tokens }: TracedModelCall): SpanFacts => ({
	name: "model call",
	startedAt: at - ms,
	endedAt: at,
	failed: failed ? "failed" : undefined,
	attributes: {
		...(agent !== undefined && { "nexus.agent": agent }),
		...(tokens !== undefined && { "nexus.tokens": tokens }),
	},
});

const toolSpan = (
	{ callId, name, status, startedAt, endedAt, args, result }: Turn["toolCalls"][number],
	shown: boolean,
): SpanFacts => ({
	name: "tool",
	startedAt,
	endedAt,
	failed: status === "failed" ? "failed" : undefined,
	attributes: {
		"gen_ai.tool.name": name,
		"gen_ai.tool.call.id": callId,
		...(shown && args !== undefined && { "gen_ai.tool.call.arguments": args }),
		...(shown && result !== undefined && { "gen_ai.tool.call.result": result }),
	},
});

const deliverySpan = ({ id, channel, account, state, mode, createdAt, endedAt, updatedAt }: Delivery): SpanFacts => ({
	name: "delivery",
	startedAt: createdAt,
	endedAt: endedAt ?? updatedAt,
	failed: state !== "complete" ? state : undefined,
	attributes: {
		"nexus.delivery_id": id,
		"nexus.channel": channel,
		"nexus.account": account,
		"nexus.delivery_state": state,
		...(mode !== undefined && { "nexus.delivery_mode": mode }),
	},
});
