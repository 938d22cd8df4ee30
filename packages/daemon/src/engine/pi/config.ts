/** The `pi:` section of `nexus.yaml`: how the pi engines reach a model. */

import type { ConfigWords } from "../entry.ts";

/** Missing values are derived from the usual key variables. */
export interface PiConfig {
	/** openai, anthropic, google, or any name when `baseUrl` is an OpenAI-compatible endpoint. */
	provider?: string;
	model?: string;
	/** An OpenAI-compatible endpoint: Ollama, vLLM, LM Studio. */
	baseUrl?: string;
	/** The environment variable that holds the key. Keys never stand in the config. */
	apiKeyEnv?: string;
	systemPrompt?: string;
	thinking?: "off" | "minimal" | "low" | "medium" | "high";
	/** The read-a-file tool may read below this folder only; without it the tool is not offered. */
	filesRoot?: string;
}

/** The keys alone, for an engine that has more. */
export const piConfigShape = ({ httpUrl, matching, oneOf, text }: ConfigWords) => ({
	provider: text("openai, anthropic, google, or any name together with baseUrl"),
	model: text("a model's id"),
	baseUrl: httpUrl("an http or https URL of an OpenAI-compatible endpoint"),
	apiKeyEnv: matching(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of an environment variable (never the key itself)"),
	systemPrompt: text("a text"),
	thinking: oneOf(["off", "minimal", "low", "medium", "high"]),
	filesRoot: text("a folder; relative to this file"),
});

export const piConfigSchema = (words: ConfigWords) => words.group(piConfigShape(words));
