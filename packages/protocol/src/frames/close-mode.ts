/** How every kind of log and every stream endpoint closes, as data (PROTOCOL §5): no reader has to guess whether a terminal will come. */

/**
 * A: the last frame says so itself (`final: true`), then a clean close.
 * B: a terminal event, then a clean close; states may repeat before it.
 * C: a chunk marked as the end of the file, then a clean close.
 * D: a subscription without a terminal; either side may close at any time.
 */
export type CloseMode = "A" | "B" | "C" | "D";

interface WithCloseMode {
	closes: CloseMode;
}

interface Kind extends WithCloseMode {
	/** Finished logs of this kind are kept so long, whatever the configuration says of the others: a flood of runs must not evict them. */
	keptMs?: number;
}

const DAY_MS = 24 * 60 * 60_000;

/** Every kind of log on the Bus. */
export const LOG_KINDS = {
	run: { closes: "A" },
	text: { closes: "A" },
	/** A model call without a session. */
	scenario: { closes: "A", keptMs: DAY_MS },
	job: { closes: "B", keptMs: 7 * DAY_MS },
	workflow: { closes: "B", keptMs: 30 * DAY_MS },
	/** A conversation in turns: closing it ends its log. */
	realtime: { closes: "D", keptMs: DAY_MS },
} as const satisfies Record<string, Kind>;

export type LogKind = keyof typeof LOG_KINDS;

/** Retention rules of the kinds that have their own. */
export const kindRetention = (
	kinds: Readonly<Record<string, Kind>> = LOG_KINDS,
): Record<string, { ageMsMax: number }> =>
	Object.fromEntries(
		Object.entries(kinds).flatMap(([kind, { keptMs }]) => (keptMs === undefined ? [] : [[kind, { ageMsMax: keptMs }]])),
	);

/** Every endpoint that streams: method and path as the OpenAPI document spells them. One that carries a single log closes as its kind does. */
export const STREAM_ENDPOINTS = {
	"GET /v1/runs/{run}/stream": LOG_KINDS.run,
	"GET /v1/runs/{run}/frames": { closes: "C" },
	"GET /v1/sessions/{session}/stream": { closes: "D" },
	"GET /v1/ws": { closes: "D" },
} as const satisfies Record<string, WithCloseMode>;

/** Every remote procedure that streams, as `service/method` of its package. */
export const STREAM_PROCEDURES = {
	"nexus.runtime.v1.RuntimeAiService/StreamScenario": LOG_KINDS.scenario,
	"nexus.runtime.v1.RuntimeAiService/SubscribeScenarioJobEvents": LOG_KINDS.job,
	"nexus.runtime.v1.RuntimeWorkflowService/SubscribeWorkflowEvents": LOG_KINDS.workflow,
	"nexus.runtime.v1.RuntimeAuditService/ExportAuditEvents": { closes: "C" },
	"nexus.runtime.v1.RuntimeAuditService/SubscribeRuntimeHealthEvents": { closes: "D" },
	"nexus.runtime.v1.RuntimeAuditService/SubscribeAIProviderHealthEvents": { closes: "D" },
	"nexus.runtime.v1.RuntimeAccountService/SubscribeAccountSessionEvents": { closes: "D" },
	"nexus.runtime.v1.RuntimeMemoryService/SubscribeMemoryEvents": { closes: "D" },
	"nexus.runtime.v1.RuntimeAgentService/SubscribeAgentEvents": { closes: "D" },
	"nexus.runtime.v1.RuntimeAppService/SubscribeAppMessages": { closes: "D" },
	"nexus.runtime.v1.RuntimeRealtimeService/ReadRealtimeEvents": LOG_KINDS.realtime,
	"nexus.runtime.v1.RuntimeLocalService/WatchLocalTransfers": { closes: "D" },
	"grpc.health.v1.Health/Watch": { closes: "D" },
} as const satisfies Record<string, WithCloseMode>;
