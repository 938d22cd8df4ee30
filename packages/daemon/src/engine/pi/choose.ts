/** From configuration and environment to one model with its key; every mistake is said here, before anything is loaded. */

import { NexusError } from "@nexus-stream/protocol";
import type { EnvironmentVariables } from "../entry.ts";
import type { ConfiguredModel } from "../model.ts";
import { DEFAULT_MODELS, detectProvider, KEY_VARIABLES, keyVariable, type PiConfig, setting } from "./config.ts";

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
