/** The `reason-act` engine: models that reason and tools that act, with several agents, enforced ends, limits and several tools at once. The door of this folder. */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Engine } from "@nexus-stream/protocol/engine";
import { type AgentConfig, agentProblems, isPromptFile, type PhasesConfig } from "../agents.ts";
import type { EngineSetup, EnvironmentVariables } from "../entry.ts";
import { chooseModel, loadModel, SYSTEM_PROMPT } from "../pi/pi.ts";
import { builtInTools, describeBy, type ToolRegistry, type ToolsConfig, toolRegistry } from "../tools/tools.ts";
import { checkpointOf, RUN_LIMITS } from "./checkpoint.ts";
import { REASON_ACT_DEFAULTS, type ReasonActConfig, SCRIPTED } from "./config.ts";
import { reasonAct } from "./loop.ts";
import { type ModelPort, piModel } from "./model/model.ts";
import { parseScript, scriptedModel } from "./model/scripted.ts";
import { AGENT, type AgentSpec, durations, type LoopSetup } from "./setup.ts";
import { FIRST_PHASE, PHASES, type PhaseRules, strategyOf } from "./termination.ts";

const SECTION = "reasonAct";

/** The sections of the configuration that the loop shares with others. */
interface SharedSections {
	agents?: AgentsConfig;
	phases?: PhasesConfig;
	tools?: ToolsConfig;
}

/** Configuration mistakes are said here; after that, only runs can fail. */
export async function createReasonActEngine(
	config: ReasonActConfig,
	{ base, env, services }: EngineSetup = { base: process.cwd(), env: process.env },
): Promise<Engine> {
	const { agents, phases, tools } = (services?.config ?? {}) as SharedSections;
	const own = await builtInTools(tools, { base, env, ...services, clock: systemClock });
	const configured = await agentsOf(config, agents, toolRegistry(own), { base, env });
	const setup = await setupFor(configured, { ...config, phases: { ...config.phases, ...phases } }, base, systemClock);
	const describe = Object.entries(tools?.describe ?? {}).map(([tool, template]) => [tool, describeBy(template)]);
	return reasonActEngine({
		...setup,
		describe: Object.fromEntries(describe),
		priority: tools?.priority ?? {},
		toolSources: services?.toolSources ?? [],
		counters: services?.counters,
	});
}

/** A setup may be made by hand, with more agents and tools. */
export function reasonActEngine(given: LoopSetup): Engine {
	const setup: LoopSetup = { checkpoint: (data) => ({ type: "checkpoint", data }), ...given };
	const { phase, phases } = setup;
	return {
		name: "reason-act",
		scripted: [...setup.agents.values()].every(({ model }) => model.failure.provider === SCRIPTED),
		continues: true,
		injects: true,
		configHash: configHashOf(setup),
		phases: [phase, ...Object.keys(phases).filter((name) => name !== phase)],
		run: (request, context) => reasonAct(setup, request, context, checkpointOf(request.continues)),
	};
}

/** Hash of what a checkpoint names: agents, their tools and the phases. Another prompt, model or limit does not invalidate it. */
function configHashOf({ agents, phases }: LoopSetup): string {
	const named = [...agents.values()].map(({ name, tools }) =>
		JSON.stringify([name, tools.tools.map((tool) => tool.name).sort()]),
	);
	return createHash("sha256")
		.update(JSON.stringify([named.sort(), Object.keys(phases).sort()]))
		.digest("base64url")
		.slice(0, 22);
}

export async function setupFor(
	agents: readonly AgentSpec[],
	config: ReasonActConfig,
	base: string,
	clock: Clock,
): Promise<LoopSetup> {
	const { validateToolArguments } = await import("@earendil-works/pi-ai");
	const values = withDefaults(REASON_ACT_DEFAULTS, config);
	const { modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax } = config;
	const phases = phasesOf(config);
	const phase = config.phase ?? FIRST_PHASE;
	if (!Object.hasOwn(phases, phase))
		throw new NexusError(
			"config",
			`\`${SECTION}.phase\` is "${phase}"; the phases are ${Object.keys(phases).join(", ")}`,
		);
	const byName = new Map(agents.map((agent) => [agent.name, agent]));
	const orchestrator = agents.find((agent) => agent.orchestrator)?.name;
	const attemptsMaxOf = (agent: string, name: string) =>
		byName.get(agent)?.attemptsMax ?? config.phases?.[name]?.attemptsMax ?? values.attemptsMax;
	return {
		agents: byName,
		entry: orchestrator ?? agents[0]!.name,
		orchestrator,
		phase,
		phases,
		attemptsMaxOf,
		strategy: await strategyOf(config.termination, base),
		limits: withDefaults(RUN_LIMITS, { modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax }),
		toolsParallelMax: values.toolsParallelMax,
		timeoutMs: { bash: values.commandMs, ...config.timeoutMs },
		toolIndicatorGapMs: values.toolIndicatorGapMs,
		durations: durations(values.toolDurationMs),
		recentTransitionMs: values.recentTransitionMs,
		toolSettleMs: values.toolSettleMs,
		retriesMax: values.retriesMax,
		retryDelayMsMax: values.retryDelayMsMax,
		validate: validateToolArguments as LoopSetup["validate"],
		clock,
	};
}

/** A phase of one's own is enforced unless it says otherwise. */
function phasesOf({ phases = {} }: ReasonActConfig): Record<string, PhaseRules> {
	const own = Object.entries(phases).map(([name, { enforce }]): [string, PhaseRules] => [
		name,
		{ enforce: enforce ?? PHASES[name]?.enforce ?? true },
	]);
	return { ...PHASES, ...Object.fromEntries(own) };
}

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
	const { orchestrator = false, visible = !orchestrator, tools: toolNames } = config;
	const { approval, timeoutMs, fallback, attemptsMax } = config;
	const { prompt = SYSTEM_PROMPT, model, tools } = parts;
	const own = { approval, timeoutMs, fallback, attemptsMax };
	return { name, orchestrator, visible, prompt, model, tools, toolNames, ...own };
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
