/** How every log and every stream endpoint closes, as data (PROTOCOL §5): no reader has to guess whether a terminal will come. */

/**
 * A: the last frame says so itself (`final: true`), then a clean close.
 * B: a terminal event, then a clean close; states may repeat before it.
 * C: a chunk marked as the end of the file, then a clean close.
 * D: a subscription without a terminal; either side may close at any time.
 */
export type CloseMode = "A" | "B" | "C" | "D";

/** Every kind of log on the Bus. */
export const LOG_CLOSE_MODE = {
	run: "A",
	session: "D",
	text: "A",
} as const satisfies Record<string, CloseMode>;

export type LogKind = keyof typeof LOG_CLOSE_MODE;

/** Every endpoint that streams: method and path as the OpenAPI document spells them. */
export const ENDPOINT_CLOSE_MODE = {
	"GET /v1/runs/{run}/stream": "A",
	"GET /v1/sessions/{session}/stream": "D",
	"GET /v1/ws": "D",
} as const satisfies Record<string, CloseMode>;
