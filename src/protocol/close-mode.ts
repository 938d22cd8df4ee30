/** How every kind of log and every stream endpoint closes, as data (PROTOCOL §5): no reader has to guess whether a terminal will come. */

/**
 * A: the last frame says so itself (`final: true`), then a clean close.
 * B: a terminal event, then a clean close; states may repeat before it.
 * C: a chunk marked as the end of the file, then a clean close.
 * D: a subscription without a terminal; either side may close at any time.
 */
export type CloseMode = "A" | "B" | "C" | "D";

interface Closing {
	closes: CloseMode;
}

interface Kind extends Closing {
	/** Finished logs of this kind are kept so long, whatever the configuration says of the others: a flood of runs must not evict them. */
	keptMs?: number;
}

/** Every kind of log on the Bus. */
export const LOG_KINDS = {
	run: { closes: "A" },
	text: { closes: "A" },
} as const satisfies Record<string, Kind>;

export type LogKind = keyof typeof LOG_KINDS;

/** What retention is told of the kinds that have a rule of their own. */
export const kindRetention = (
	kinds: Readonly<Record<string, Kind>> = LOG_KINDS,
): Record<string, { ageMsMax: number }> =>
	Object.fromEntries(
		Object.entries(kinds).flatMap(([kind, { keptMs }]) => (keptMs === undefined ? [] : [[kind, { ageMsMax: keptMs }]])),
	);

/** Every endpoint that streams: method and path as the OpenAPI document spells them. One that carries a single log closes as its kind does. */
export const STREAM_ENDPOINTS = {
	"GET /v1/runs/{run}/stream": LOG_KINDS.run,
	"GET /v1/sessions/{session}/stream": { closes: "D" },
	"GET /v1/ws": { closes: "D" },
} as const satisfies Record<string, Closing>;
