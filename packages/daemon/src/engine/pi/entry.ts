/** The `pi` engine's line in the registry: what runs when a model can be reached. */

import { resolve } from "node:path";
import type { EngineEntry, EngineSetup, EnvironmentVariables, KeyCheck } from "../entry.ts";
import {
	chooseModel,
	DEFAULT_MODELS,
	detectProvider,
	keyVariable,
	type PiConfig,
	piConfigSchema,
	piConfigShape,
} from "./config.ts";

export { type PiConfig, piConfigShape };

const GET_A_MODEL =
	"for a real model set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or pi.baseUrl in nexus.yaml";

/** The common part of both pi engines' entries. */
export const piSection = {
	section: "pi",
	configSchema: piConfigSchema,
	because: "a model is configured",
	hint: GET_A_MODEL,
	checkKeys: checkPiKeys,
	model: (config: PiConfig | undefined, env: EnvironmentVariables) => chooseModel(config ?? {}, env),
} as const;

export const pi = {
	...piSection,
	name: "pi",
	uses: [],
	usualModels: DEFAULT_MODELS,
	caller: async () => (await import("./pi.ts")).callModel,
	priority: (config: PiConfig | undefined, env: EnvironmentVariables) =>
		namesModel(config) || detectProvider(env) ? 2 : 0,
	async load(config: PiConfig | undefined, { base, env, services }: EngineSetup) {
		const { createPiEngine } = await import("./pi.ts");
		return createPiEngine(resolvedConfig(config, base), env, undefined, services);
	},
} as const satisfies EngineEntry<PiConfig>;

/** With its folder absolute. */
export const resolvedConfig = (config: PiConfig = {}, base: string): PiConfig =>
	config.filesRoot === undefined ? config : { ...config, filesRoot: resolve(base, config.filesRoot) };

/** A model is named: then a real answer is wanted, and a mistake is better said than covered by a demo. */
const namesModel = (config: PiConfig | undefined): boolean =>
	config?.provider !== undefined || config?.baseUrl !== undefined || config?.model !== undefined;

function checkPiKeys(config: PiConfig | undefined, env: EnvironmentVariables): KeyCheck {
	const named = config?.apiKeyEnv;
	if (named !== undefined) {
		if (env[named]) return { ok: true, detail: `${named} is set` };
		return { ok: false, detail: `${named} is not set`, todo: `export ${named}=… before \`nexus up\`` };
	}
	const found = detectProvider(env);
	// A key goes to its own provider only, whichever others are set.
	const provider = config?.provider ?? (config?.baseUrl === undefined ? found?.provider : undefined);
	const variable = provider === undefined ? undefined : keyVariable(provider, env);
	if (variable !== undefined) return { ok: true, detail: `${variable} is set, for ${provider}` };
	const local = config?.baseUrl ?? (provider === found?.provider ? found?.baseUrl : undefined);
	if (local !== undefined) return { ok: true, detail: `none needed for ${local}` };
	const detail = provider === undefined ? "no key is set" : `no key for ${provider} is set`;
	return { ok: false, detail, todo: GET_A_MODEL };
}
