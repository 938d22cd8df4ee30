/** From a model choice to pi-ai's model and provider, loading only the provider that is used; and one call of a model without an agent. */

import type { Api, Message, Model, MutableModels, Provider } from "@earendil-works/pi-ai";
import { NexusError } from "@nexus-stream/protocol";
import type { ModelCallEvent, ModelCallRequest, ModelTarget } from "../model.ts";
import { DEFAULT_MODELS, type ModelChoice, type PiConfig } from "./config.ts";
import { assistantMessages } from "./messages.ts";
import { FIRST_USAGE, repairedFetch } from "./wire.ts";

export interface LoadedModel {
	model: Model<Api>;
	/** Knows the key; answers for exactly this model's provider. */
	provider: Provider;
	models: MutableModels;
}

/** Not known for a server of the user's own: the window that most models have today. */
const CONTEXT_WINDOW_TOKENS = 128_000;

/** `section` is where the configuration names the model. */
export async function loadModel(
	choice: ModelChoice,
	thinking: PiConfig["thinking"],
	section = "pi",
): Promise<LoadedModel> {
	quietLibraries(process.env);
	const { createModels } = await import("@earendil-works/pi-ai");
	const builtIn = await builtInProvider(choice);
	const model = builtIn === undefined ? compatibleModel(choice, thinking) : listedModel(builtIn, choice, section);
	const base = builtIn ?? (await compatibleProvider(choice, model));
	const provider: Provider = {
		...(choice.provider === "google" ? base : withRepairedFetch(base, choice.provider === "anthropic")),
		getModels: () => [model],
		auth: { apiKey: { name: choice.keySource, resolve: async () => ({ auth: { apiKey: choice.apiKey } }) } },
	};
	const models = createModels();
	models.setProvider(provider);
	return { model, provider, models };
}

/** Google's library takes no other fetch. */
function withRepairedFetch(base: Provider, isAnthropic: boolean): Provider {
	const repaired = (fetch: typeof globalThis.fetch | undefined) =>
		isAnthropic ? repairedFetch(fetch, () => FIRST_USAGE) : repairedFetch(fetch);
	return {
		...base,
		stream: (model, context, options) =>
			base.stream(model, context, { ...options, fetch: repaired(options?.fetch) } as typeof options),
		streamSimple: (model, context, options) =>
			base.streamSimple(model, context, { ...options, fetch: repaired(options?.fetch) }),
	};
}

/** The libraries print answers that they cannot read, which may be private text and must not reach a log unless the operator sets them. */
function quietLibraries(env: NodeJS.ProcessEnv): void {
	env.OPENAI_LOG ??= "off";
	env.ANTHROPIC_LOG ??= "off";
}

/** `openai` at another address means the chat-completions wire that everyone copies, not OpenAI's own newest one. */
async function builtInProvider({ provider, baseUrl }: ModelChoice): Promise<Provider | undefined> {
	switch (provider) {
		case "anthropic":
			return (await import("@earendil-works/pi-ai/providers/anthropic")).anthropicProvider() as Provider;
		case "google":
			return (await import("@earendil-works/pi-ai/providers/google")).googleProvider() as Provider;
		case "openai":
			if (baseUrl !== undefined) return undefined;
			return (await import("@earendil-works/pi-ai/providers/openai")).openaiProvider() as Provider;
		default:
			return undefined;
	}
}

function listedModel(provider: Provider, choice: ModelChoice, section: string): Model<Api> {
	const all = provider.getModels();
	const listed = all.find((model) => model.id === choice.model);
	if (choice.baseUrl === undefined) {
		if (listed !== undefined) return listed;
		const known = all.map((model) => model.id).join(", ");
		throw new NexusError(
			"config",
			`${section}: ${choice.provider} has no model "${choice.model}". Set \`${section}.model\` to one of: ${known}`,
		);
	}
	const template = listed ?? all.find((model) => model.id === DEFAULT_MODELS[choice.provider])!;
	return { ...template, id: choice.model, name: choice.model, baseUrl: choice.baseUrl };
}

function compatibleModel(choice: ModelChoice, thinking: PiConfig["thinking"]): Model<"openai-completions"> {
	return {
		id: choice.model,
		name: choice.model,
		api: "openai-completions",
		provider: choice.provider,
		baseUrl: choice.baseUrl!,
		reasoning: thinking !== undefined && thinking !== "off",
		input: ["text", "image"],
		cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
		contextWindow: CONTEXT_WINDOW_TOKENS,
		// 0 = the server decides: one with a small window refuses a limit it cannot keep.
		maxTokens: 0,
		// Local servers know neither the developer role nor `store`.
		compat: { supportsDeveloperRole: false, supportsStore: false },
	};
}

async function compatibleProvider(choice: ModelChoice, model: Model<Api>): Promise<Provider> {
	const { createProvider } = await import("@earendil-works/pi-ai");
	const { openAICompletionsApi } = await import("@earendil-works/pi-ai/api/openai-completions.lazy");
	return createProvider({
		id: choice.provider,
		baseUrl: choice.baseUrl!,
		models: [model],
		api: openAICompletionsApi(),
		auth: { apiKey: { name: choice.keySource, resolve: async () => undefined } },
	});
}

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
		fetch,
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

function toPi({ role, text }: ModelCallRequest["messages"][number]): Message[] {
	const timestamp = Date.now();
	if (role === "user") return [{ role, content: text, timestamp }];
	return assistantMessages({ role, text }, { timestamp, callsBefore: 0 });
}
