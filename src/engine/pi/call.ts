/** One call of a model without an agent around it: no session, no tools, no second try. */

import type { Message } from "@earendil-works/pi-ai";
import type { ModelCallEvent, ModelCallRequest, ModelTarget } from "../model.ts";
import { loadModel } from "./model.ts";
import { assistantMessages } from "./past.ts";

/** Whoever makes the requests adds the key: the library, what it reads of the environment and its messages never have it. */
const NO_KEY = "none";

export async function* callModel(target: ModelTarget, request: ModelCallRequest): AsyncGenerator<ModelCallEvent, void> {
	const choice = { ...target, apiKey: NO_KEY, keySource: "the connector" };
	const { model, models } = await loadModel(choice, "off", "connector");
	const { system, messages, temperature, maxTokens, signal, fetch } = request;
	const context = { messages: messages.flatMap(toPi), ...(system !== undefined && { systemPrompt: system }) };
	const stream = models.streamSimple(model, context, {
		...{ signal, fetch, maxRetries: 0 },
		...(temperature !== undefined && { temperature }),
		...(maxTokens !== undefined && { maxTokens }),
	});
	for await (const event of stream) {
		if (event.type === "text_delta") {
			if (event.delta !== "") yield { type: "text", delta: event.delta };
		} else if (event.type === "done") {
			yield usageOf(event.message.usage);
		} else if (event.type === "error") {
			yield usageOf(event.error.usage);
			throw new Error(event.error.errorMessage ?? "no reason given");
		} else yield { type: "alive" };
	}
}

/** No call that was answered used no token at all: then the provider did not say. */
function usageOf({
	input,
	output,
	cacheRead,
	cacheWrite,
}: Record<"input" | "output" | "cacheRead" | "cacheWrite", number>): ModelCallEvent {
	const read = input + cacheRead + cacheWrite;
	return read + output === 0 ? { type: "usage", input: -1, output: -1 } : { type: "usage", input: read, output };
}

function toPi({ role, text }: ModelCallRequest["messages"][number]): Message[] {
	const timestamp = Date.now();
	if (role === "user") return [{ role, content: text, timestamp }];
	return assistantMessages({ role, text }, { timestamp, callsBefore: 0 });
}
