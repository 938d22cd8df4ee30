/** One call of a model, for whoever has no run of an agent: what is asked, and what comes. */

import { loadOnce } from "../std/load-once.ts";

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

/** The library is loaded by the first call. */
const load = loadOnce(async () => (await import("./pi/pi.ts")).callModel);

/** Throws what the provider's library says; `fetch` knows better what happened. */
export async function* callModel(target: ModelTarget, request: ModelCallRequest): AsyncGenerator<ModelCallEvent, void> {
	yield* (await load())(target, request);
}
