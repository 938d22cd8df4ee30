/** How the pi engines reach a model: the `pi:` section of `nexus.yaml`, what the environment offers, and every mistake in them. No library is loaded. */

import { NexusError } from "@nexus-stream/protocol";
import type { z } from "zod";
import type { ConfigWords, EnvironmentVariables } from "../entry.ts";
import type { ConfiguredModel } from "../model.ts";

/** The keys alone, for an engine that has more. Missing values are derived from the usual key variables. */
export const piConfigShape = ({ httpUrl, matching, oneOf, text }: ConfigWords) => ({
	provider: text("openai, anthropic, google, or any name together with baseUrl"),
	model: text("a model's id"),
	/** Ollama, vLLM, LM Studio. */
	baseUrl: httpUrl("an http or https URL of an OpenAI-compatible endpoint"),
	apiKeyEnv: matching(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of an environment variable (never the key itself)"),
	systemPrompt: text("a text"),
	thinking: oneOf(["off", "minimal", "low", "medium", "high"]),
	/** The read-a-file tool may read below this folder only; without it the tool is not offered. */
	filesRoot: text("a folder; relative to this file"),
});

export const piConfigSchema = (words: ConfigWords) => words.group(piConfigShape(words));

export type PiConfig = z.infer<ReturnType<typeof piConfigSchema>>;

/** The variables that may hold a provider's key, the usual one first. */
export const KEY_VARIABLES: Readonly<Record<string, readonly string[]>> = {
	openai: ["OPENAI_API_KEY"],
	anthropic: ["ANTHROPIC_API_KEY"],
	google: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
};

/** Quick, capable, and on the provider's list; a test checks that pi-ai knows them. */
export const DEFAULT_MODELS: Readonly<Record<string, string>> = {
	openai: "gpt-5.4-mini",
	anthropic: "claude-sonnet-4-6",
	google: "gemini-flash-latest",
};

export interface DetectedProvider {
	provider: string;
	model: string;
	/** The variable that holds the key. A local endpoint works with it unset. */
	apiKeyEnv: string;
	/** An OpenAI-compatible endpoint, from OPENAI_BASE_URL. */
	baseUrl?: string;
}

/** A variable's value; a blank one counts as unset. */
export function setting(env: EnvironmentVariables, name: string): string | undefined {
	const value = env[name]?.trim();
	return value === "" ? undefined : value;
}

/** The first of a provider's key variables that is set. */
export function keyVariable(provider: string, env: EnvironmentVariables): string | undefined {
	return KEY_VARIABLES[provider]?.find((name) => setting(env, name) !== undefined);
}

/** OPENAI_BASE_URL without a key is a local server; it counts only with OPENAI_MODEL, because every server has its own models. */
export function detectProvider(env: EnvironmentVariables): DetectedProvider | undefined {
	const baseUrl = setting(env, "OPENAI_BASE_URL");
	for (const provider of Object.keys(KEY_VARIABLES)) {
		const apiKeyEnv = keyVariable(provider, env);
		if (apiKeyEnv === undefined) continue;
		const model = DEFAULT_MODELS[provider]!;
		if (provider !== "openai") return { provider, model, apiKeyEnv };
		const chosen = setting(env, "OPENAI_MODEL") ?? model;
		return { provider, model: chosen, apiKeyEnv, baseUrl };
	}
	const model = setting(env, "OPENAI_MODEL");
	if (baseUrl === undefined || model === undefined) return undefined;
	return { provider: "openai", model, apiKeyEnv: "OPENAI_API_KEY", baseUrl };
}

export interface ModelChoice extends ConfiguredModel {
	/** Advice when the key is refused. */
	keySource: string;
}

/** Local servers want a key to be present and do not look at it. */
const NO_KEY = "none";

const KNOWN = Object.keys(KEY_VARIABLES);

const wrong = (section: string, message: string): NexusError => new NexusError("config", `${section}: ${message}`);

/** `section` is where the configuration stands. */
export function chooseModel(config: PiConfig, env: EnvironmentVariables, section = "pi"): ModelChoice {
	const detected = detectProvider(env);
	if (config.provider === undefined && config.baseUrl === undefined && detected === undefined) {
		throw wrong(
			section,
			"no model is configured. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or set " +
				`\`${section}.baseUrl\` and \`${section}.model\` for a local server (Ollama: http://127.0.0.1:11434/v1)`,
		);
	}
	const provider = config.provider ?? (config.baseUrl === undefined ? detected!.provider : "openai-compatible");
	const baseUrl = checkedUrl(config.baseUrl ?? environmentUrl(provider, env), section);
	if (baseUrl === undefined && !KNOWN.includes(provider)) {
		throw wrong(
			section,
			`unknown provider "${provider}". Use ${KNOWN.join(", ")}, or set \`${section}.baseUrl\` to its OpenAI-compatible endpoint`,
		);
	}
	const environmentModel = detected?.provider === provider ? detected.model : DEFAULT_MODELS[provider];
	const model = config.model ?? environmentModel;
	if (model === undefined) {
		throw wrong(section, `\`${section}.model\` is not set. Name one of the models that ${baseUrl}/models lists`);
	}
	return { provider, model, baseUrl, ...chooseKey(config, env, section, { provider, baseUrl }) };
}

/** OPENAI_BASE_URL moves `openai` only: the other providers have their own wire. */
const environmentUrl = (provider: string, env: EnvironmentVariables): string | undefined =>
	provider === "openai" ? setting(env, "OPENAI_BASE_URL") : undefined;

function checkedUrl(text: string | undefined, section: string): string | undefined {
	if (text === undefined) return undefined;
	const url = URL.parse(text);
	if (url === null || !["http:", "https:"].includes(url.protocol)) {
		throw wrong(section, `\`${section}.baseUrl\` (or OPENAI_BASE_URL) is not an http or https address: ${text}`);
	}
	return text.replace(/\/+$/, "");
}

/** A provider's usual variable goes to that provider only, so a key never travels to a server of another name. */
function chooseKey(
	config: PiConfig,
	env: EnvironmentVariables,
	section: string,
	{ provider, baseUrl }: { provider: string; baseUrl: string | undefined },
): { apiKey: string; keySource: string } {
	const name = config.apiKeyEnv ?? keyVariable(provider, env);
	const apiKey = name === undefined ? undefined : setting(env, name);
	if (name !== undefined && apiKey !== undefined) return { apiKey, keySource: name };
	if (config.apiKeyEnv !== undefined) {
		throw wrong(section, `\`${section}.apiKeyEnv\` names ${config.apiKeyEnv}, which is not set in the environment`);
	}
	if (baseUrl === undefined) {
		throw wrong(
			section,
			`provider "${provider}" needs a key. Set ${KEY_VARIABLES[provider]!.join(" or ")}, or name another variable in \`${section}.apiKeyEnv\``,
		);
	}
	return { apiKey: NO_KEY, keySource: KEY_VARIABLES[provider]?.[0] ?? `${section}.apiKeyEnv` };
}
