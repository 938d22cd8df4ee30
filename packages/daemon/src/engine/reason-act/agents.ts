/** From the configuration's agents to those of the loop: prompts are read, models are loaded. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { type AgentConfig, agentProblems, isPromptFile } from "../agents/agents.ts";
import type { EngineSetup, EnvironmentVariables } from "../entry.ts";
import { chooseModel, loadModel } from "../pi/pi.ts";
import type { ToolRegistry } from "../tools/tools.ts";
import { REASON_ACT_DEFAULTS, type ReasonActConfig, SCRIPTED } from "./config.ts";
import { type ModelPort, piModel } from "./model/model.ts";
import { parseScript, scriptedModel } from "./model/scripted.ts";
import type { AgentSpec } from "./setup.ts";

const SECTION = "reasonAct";

/** The only agent there is without an `agents` section. */
export const AGENT = "main";

const SYSTEM_PROMPT =
	"You are a helpful assistant. Answer in Markdown, briefly and to the point. Use the tools you have when they help; say so when you do not know.";

export type AgentsConfig = Readonly<Record<string, AgentConfig>>;

/** In the order of the configuration. */
export async function agentsOf(
	config: ReasonActConfig,
	agents: AgentsConfig | undefined,
	tools: ToolRegistry,
	{ base, env }: Pick<EngineSetup, "base" | "env">,
): Promise<AgentSpec[]> {
	// The reader of a file has reported this with its line; a program that embeds the daemon has not.
	const [problem] = agentProblems({
		engine: { name: SECTION },
		enginesWithAgents: [SECTION],
		agents,
		toolMs: Number.POSITIVE_INFINITY,
		isFile: () => true,
	});
	if (problem !== undefined) throw new NexusError("config", problem.message);
	const modelFor = modelLoader(config, env);
	const named = Object.entries(agents ?? { [AGENT]: {} });
	return await Promise.all(
		named.map(async ([name, agent]) =>
			agentSpec(name, agent, {
				model: await modelFor(name, agent),
				tools,
				prompt: await promptOf(name, agent.prompt ?? config.systemPrompt ?? SYSTEM_PROMPT, base),
			}),
		),
	);
}

/** One agent of the loop, with the defaults of its kind. */
export function agentSpec(
	name: string,
	config: AgentConfig,
	parts: { model: ModelPort; tools: ToolRegistry; prompt?: string },
): AgentSpec {
	const { orchestrator = false, visible = !orchestrator, tools, approval, timeoutMs, fallback, attemptsMax } = config;
	return {
		name,
		orchestrator,
		visible,
		prompt: parts.prompt ?? SYSTEM_PROMPT,
		model: parts.model,
		tools: parts.tools,
		toolNames: tools,
		approval,
		timeoutMs,
		fallback,
		attemptsMax,
	};
}

async function promptOf(agent: string, prompt: string, base: string): Promise<string> {
	if (!isPromptFile(prompt)) return prompt;
	return await readFile(resolve(base, prompt), "utf8").catch((cause: unknown) => {
		throw new NexusError("config", `\`agents.${agent}.prompt\` cannot be read: ${wordsOf(cause)}`, { cause });
	});
}

/** Agents with the same model share one. */
function modelLoader(config: ReasonActConfig, env: EnvironmentVariables) {
	const loaded = new Map<string, Promise<ModelPort>>();
	return (name: string, agent: AgentConfig): Promise<ModelPort> => {
		const own = modelConfig(config, agent);
		const key = JSON.stringify(own);
		const model = loaded.get(key) ?? loadedModel(own, env, isOwn(agent) ? `agents.${name}` : SECTION);
		loaded.set(key, model);
		return model;
	};
}

const isOwn = ({ provider, model }: AgentConfig): boolean => provider !== undefined || model !== undefined;

/** Another provider has its own address, key and models: those of `reasonAct` are not for it. */
function modelConfig(config: ReasonActConfig, agent: AgentConfig): ReasonActConfig {
	const { provider, model, thinking } = agent;
	const isOther = provider !== undefined && provider !== config.provider;
	const { baseUrl: _url, apiKeyEnv: _key, model: _model, script: _script, ...rest } = config;
	const { script } = config;
	return {
		...(isOther ? { ...rest, script: provider === SCRIPTED ? script : undefined } : config),
		...(provider !== undefined && { provider }),
		...(model !== undefined && { model }),
		...(thinking !== undefined && { thinking }),
	};
}

async function loadedModel(config: ReasonActConfig, env: EnvironmentVariables, section: string): Promise<ModelPort> {
	const { retriesMax, retryDelayMsMax } = withDefaults(REASON_ACT_DEFAULTS, config);
	if (config.provider === SCRIPTED) return scriptedModel(await scriptOf(config.script), systemClock);
	if (config.script !== undefined)
		throw new NexusError("config", `\`${SECTION}.script\` is for \`provider: ${SCRIPTED}\` only`);
	const choice = chooseModel(config, env, section);
	const loaded = await loadModel(choice, config.thinking, section);
	const failure = { ...choice, section };
	return await piModel(loaded, { thinking: config.thinking, failure, retriesMax, retryDelayMsMax });
}

async function scriptOf(path: string | undefined) {
	if (path === undefined) return undefined;
	const text = await readFile(path, "utf8").catch((cause: unknown) => {
		throw new NexusError("config", `\`${SECTION}.script\` cannot be read: ${wordsOf(cause)}`, { cause });
	});
	return parseScript(text, path);
}
