/** The way of spans to an OTLP receiver: a bounded queue, batches, and a log line when the receiver does not take them. Loads the libraries. */

import { wordsOf } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { type Attributes, ROOT_CONTEXT, type Span, SpanStatusCode, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, RandomIdGenerator, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";

export interface SpanFacts {
	name: string;
	/** In milliseconds since the epoch. */
	startedAt: number;
	endedAt: number;
	/** Why, in a word. */
	failed?: string;
	attributes: Attributes;
}

export interface Exported {
	/** Below another span, or at the top of a trace. */
	span(facts: SpanFacts, parent: Span | { traceId: string }): Span;
	/** Sends what is left. Never rejects. */
	close(): Promise<void>;
}

const QUEUE_SPANS_MAX = 2048;
const BATCH_SPANS_MAX = 256;
const BATCH_MS = 1000;
const SEND_MS = 5000;
const ATTRIBUTE_CHARS_MAX = 4096;
const WARN_EVERY_MS = 60_000;

export function openExporter({ endpoint, version, log }: { endpoint: string; version: string; log: Log }): Exported {
	const ids = new TraceIds();
	const exporter = sent(new OTLPTraceExporter({ url: tracesUrl(endpoint), timeoutMillis: SEND_MS }), log);
	const provider = new TracerProvider({
		idGenerator: ids,
		resource: resourceFromAttributes({
			"service.name": process.env.OTEL_SERVICE_NAME || "nexus",
			"service.version": version,
		}),
		spanLimits: { attributeValueLengthLimit: ATTRIBUTE_CHARS_MAX },
		spanProcessors: [
			new BatchSpanProcessor({
				exporter,
				maxQueueSize: QUEUE_SPANS_MAX,
				maxExportBatchSize: BATCH_SPANS_MAX,
				scheduledDelayMillis: BATCH_MS,
				exportTimeoutMillis: SEND_MS,
			}),
		],
	});
	const tracer = provider.getTracer("nexus", version);
	return {
		span({ name, startedAt, endedAt, failed, attributes }, parent) {
			if ("traceId" in parent) ids.next = parent.traceId;
			const context = "traceId" in parent ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent);
			const span = tracer.startSpan(name, { startTime: new Date(startedAt), attributes }, context);
			if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed });
			span.end(new Date(Math.max(startedAt, endedAt)));
			return span;
		},
		close: () =>
			provider.shutdown().catch((cause: unknown) => log.warn({ error: wordsOf(cause) }, "spans could not be sent")),
	};
}

/** A run has its trace id before it has a span. */
class TraceIds extends RandomIdGenerator {
	next: string | undefined;

	override generateTraceId(): string {
		const { next } = this;
		this.next = undefined;
		return next ?? super.generateTraceId();
	}
}

const tracesUrl = (endpoint: string): string =>
	/\/v1\/traces\/?$/.test(endpoint) ? endpoint : `${endpoint.replace(/\/+$/, "")}/v1/traces`;

/** The library is silent about what it could not send. */
function sent(exporter: OTLPTraceExporter, log: Log): SpanExporter {
	let saidAt = Number.NEGATIVE_INFINITY;
	return {
		export(spans, done) {
			exporter.export(spans, (result) => {
				const now = performance.now();
				if (result.code !== 0 && now - saidAt >= WARN_EVERY_MS) {
					saidAt = now;
					log.warn({ error: wordsOf(result.error), spans: spans.length }, "the OTLP receiver does not take spans");
				}
				done(result);
			});
		},
		forceFlush: () => exporter.forceFlush(),
		shutdown: () => exporter.shutdown(),
	};
}
