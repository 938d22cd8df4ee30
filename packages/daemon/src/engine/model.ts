/** One call of a model without an agent: the target, the request and the events. */

/** How to reach the model of an engine. */
export interface ConfiguredModel {
	provider: string;
	model: string;
	/** Undefined: the provider's own endpoint. */
	baseUrl?: string;
	apiKey: string;
}

export interface ModelTarget {
	/** `anthropic`, or any name of an OpenAI-compatible endpoint. */
	provider: string;
	model: string;
	baseUrl: string;
}

export interface ModelCallRequest {
	system?: string;
	messages: readonly { role: "user" | "assistant"; text: string }[];
	temperature?: number;
	maxTokens?: number;
	signal: AbortSignal;
	/** Makes the requests, and adds the key. */
	fetch: typeof globalThis.fetch;
}

export type ModelCallEvent =
	| { type: "text"; delta: string }
	/** Any other sign of life. */
	| { type: "alive" }
	/** -1 = the provider did not say. */
	| { type: "usage"; input: number; output: number };

/** Throws what the provider's library says; `fetch` knows better what happened. */
export type CallModel = (target: ModelTarget, request: ModelCallRequest) => AsyncIterable<ModelCallEvent>;
