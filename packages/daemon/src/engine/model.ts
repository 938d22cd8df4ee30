/** One call of a model, for whoever has no run of an agent: what reaches it, what is asked, and what comes. */

/** What reaches the model that an engine asks. */
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
