/** One call of a model without an agent around it: no session, no tools, no second try. */

import type { Message } from "@earendil-works/pi-ai";
import type { ModelCallEvent, ModelCallRequest, ModelTarget } from "../model.ts";
import { loadModel } from "./model.ts";
import { assistantMessages } from "./past.ts";

/** `fetch` adds the key, so that the library, its environment and its messages never have it. */
const NO_KEY = "none";

export async function* callModel(target: ModelTarget, request: ModelCallRequest): AsyncGenerator<ModelCallEvent, void> {
	const choice = { ...target, apiKey: NO_KEY, keySource: "the connector" };
	const { model, models } = await loadModel(choice, "off", "connector");
	const { system, messages, temperature, maxTokens, signal, fetch } = request;
	const context = { messages: messages.flatMap(toPi), systemPrompt: system };
	const stream = models.streamSimple(model, context, {
		signal,
		maxRetries: 0,
		fetch: target.provider === "anthropic" ? async (...asked) => withUsage(await fetch(...asked)) : fetch,
		temperature,
		maxTokens,
	});
	let hasText = false;
	for await (const event of stream) {
		if (event.type === "text_delta") {
			if (event.delta === "") continue;
			hasText = true;
			yield { type: "text", delta: event.delta };
		} else if (event.type === "done") {
			yield usageOf(event.message.usage, hasText);
		} else if (event.type === "error") {
			yield usageOf(event.error.usage, true);
			throw new Error(event.error.errorMessage ?? "no reason given");
		} else yield { type: "alive" };
	}
}

/** The library has 0 for what the provider did not say. No request has no token at all, and no answer with words has none. */
function usageOf(
	{ input, output, cacheRead, cacheWrite }: Record<"input" | "output" | "cacheRead" | "cacheWrite", number>,
	hasOutput: boolean,
): ModelCallEvent {
	const read = input + cacheRead + cacheWrite;
	const isSilent = output === 0 && (hasOutput || read === 0);
	return { type: "usage", input: read === 0 ? -1 : read, output: isSilent ? -1 : output };
}

/** The bytes up to the first event of an answer are few. */
const FIRST_EVENT_CHARS_MAX = 64 * 1024;
const FIRST_EVENT = /^data: ?(\{.*"message_start".*\})\r?\n/m;

/** Servers that copy Anthropic's wire may leave the usage out of the first event; the library takes it for granted. */
function withUsage(response: Response): Response {
	const { status, statusText, headers, body } = response;
	if (!response.ok || body === null) return response;
	// Bytes as characters: a chunk may end within a letter.
	let begin: string | undefined = "";
	const amended = new TransformStream<Uint8Array, Uint8Array>({
		transform(chunk, controller) {
			if (begin === undefined) return controller.enqueue(chunk);
			begin += Buffer.from(chunk).toString("latin1");
			if (!FIRST_EVENT.test(begin) && begin.length < FIRST_EVENT_CHARS_MAX) return;
			controller.enqueue(Buffer.from(begin.replace(FIRST_EVENT, amendedEvent), "latin1"));
			begin = undefined;
		},
		flush(controller) {
			if (begin) controller.enqueue(Buffer.from(begin, "latin1"));
		},
	});
	return new Response(body.pipeThrough(amended), { status, statusText, headers });
}

function amendedEvent(line: string, data: string): string {
	try {
		const event = JSON.parse(Buffer.from(data, "latin1").toString()) as {
			type?: unknown;
			message?: { usage?: object | null };
		};
		if (event.type !== "message_start" || !event.message || event.message.usage) return line;
		const whole = JSON.stringify({ ...event, message: { ...event.message, usage: {} } });
		return `data: ${Buffer.from(whole).toString("latin1")}\n`;
	} catch {
		return line;
	}
}

function toPi({ role, text }: ModelCallRequest["messages"][number]): Message[] {
	const timestamp = Date.now();
	if (role === "user") return [{ role, content: text, timestamp }];
	return assistantMessages({ role, text }, { timestamp, callsBefore: 0 });
}
