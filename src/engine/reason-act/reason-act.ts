/** The `reason-act` engine: a model that reasons and tools that act, with enforced ends, limits and several tools at once. The door of this folder. */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { NexusError, wordsOf } from "../../protocol/protocol.ts";
import { type Clock, systemClock } from "../../std/clock.ts";
import type { EnginePlace, Environment } from "../entry.ts";
import { chooseModel, loadModel } from "../pi/pi.ts";
import type { Engine, EngineEvent } from "../port.ts";
import { builtInTools, type Tool, type ToolsConfig, toolRegistry } from "../tools/tools.ts";
import { type Checkpoint, checkpointOf } from "./checkpoint.ts";
import { type ReasonActConfig, SCRIPTED } from "./config.ts";
import { durations } from "./durations.ts";
import { reasonAct } from "./loop.ts";
import { type ModelPort, piModel } from "./model.ts";
import { parseScript, scriptedModel } from "./scripted.ts";
import type { LoopSetup } from "./setup.ts";
import { onceReady, type Sources, withSources } from "./sources.ts";
import { RUN_LIMITS, type RunLimits } from "./state.ts";
import { ATTEMPTS_MAX, FIRST_PHASE, PHASES, type Phase, STRATEGIES } from "./termination.ts";

const SECTION = "reasonAct";

/** The only agent there is without an `agents` section. */
const AGENT = "main";

const SYSTEM_PROMPT =
	"You are a helpful assistant. Answer in Markdown, briefly and to the point. Use the tools you have when they help; say so when you do not know.";

export const REASON_ACT_DEFAULTS = {
	attemptsMax: ATTEMPTS_MAX,
	toolsParallelMax: 8,
	toolIndicatorGapMs: 100,
	toolDurationMs: 1000,
	commandMs: 30_000,
	recentTransitionMs: 30_000,
	toolSettleMs: 1000,
	retriesMax: 2,
	retryDelayMsMax: 10_000,
} as const;

/** Configuration mistakes are said here; after that, only runs can fail. */
export async function createReasonActEngine(
	config: ReasonActConfig,
	{ base, env, house }: EnginePlace = { base: process.cwd(), env: process.env },
): Promise<Engine> {
	const model = await modelOf(config, env);
	const tools = await builtInTools(house?.config.tools as ToolsConfig | undefined, {
		base,
		env,
		...house,
		clock: systemClock,
	});
	const sources = house && { sources: house.toolSources, warn: house.warn };
	return reasonActEngine(await setupOf(config, model, tools), sources);
}

/** A setup may be made by hand, with more agents, tools and an approver. */
export function reasonActEngine(given: LoopSetup, sources?: Sources): Engine {
	const setup: LoopSetup = { checkpoint: asEvent, ...given };
	const { phase, phases } = setup;
	return {
		name: "reason-act",
		continues: true,
		configHash: configHashOf(setup),
		phases: [phase, ...Object.keys(phases).filter((name) => name !== phase)],
		run(request, { signal }) {
			const from = checkpointOf(request.continues);
			if (sources === undefined || sources.sources.length === 0) return reasonAct(setup, request, signal, from);
			return onceReady(async () => reasonAct(await withSources(setup, request, sources), request, signal, from));
		},
	};
}

const asEvent = (data: Checkpoint): EngineEvent => ({ type: "checkpoint", data });

/** Of what a checkpoint names: agents, their tools and the phases. Another prompt, model or limit is no reason to begin anew. */
function configHashOf({ agents, phases }: LoopSetup): string {
	const named = [...agents.values()].map(({ name, tools }) =>
		JSON.stringify([name, tools.tools.map((tool) => tool.name).sort()]),
	);
	return createHash("sha256")
		.update(JSON.stringify([named.sort(), Object.keys(phases).sort()]))
		.digest("base64url")
		.slice(0, 22);
}

async function modelOf(config: ReasonActConfig, env: Environment): Promise<ModelPort> {
	const { retriesMax, retryDelayMsMax } = { ...REASON_ACT_DEFAULTS, ...config };
	if (config.provider === SCRIPTED) return scriptedModel(await scriptOf(config.script));
	if (config.script !== undefined)
		throw new NexusError("config", `\`${SECTION}.script\` is for \`provider: ${SCRIPTED}\` only`);
	const choice = chooseModel(config, env, SECTION);
	const loaded = await loadModel(choice, config.thinking, SECTION);
	const failure = { ...choice, section: SECTION };
	return await piModel(loaded, { thinking: config.thinking, failure, retriesMax, retryDelayMsMax });
}

async function scriptOf(path: string | undefined) {
	if (path === undefined) return undefined;
	const text = await readFile(path, "utf8").catch((cause: unknown) => {
		throw new NexusError("config", `\`${SECTION}.script\` cannot be read: ${wordsOf(cause)}`, { cause });
	});
	return parseScript(text, path);
}

/** One agent, its tools and the configured limits. */
export async function setupOf(
	config: ReasonActConfig,
	model: ModelPort,
	tools: readonly Tool[],
	clock: Clock = systemClock,
): Promise<LoopSetup> {
	const { validateToolArguments } = await import("@earendil-works/pi-ai");
	const values = { ...REASON_ACT_DEFAULTS, ...config };
	const phases = phasesOf(config);
	const phase = config.phase ?? FIRST_PHASE;
	if (!Object.hasOwn(phases, phase))
		throw new NexusError(
			"config",
			`\`${SECTION}.phase\` is "${phase}"; the phases are ${Object.keys(phases).join(", ")}`,
		);
	const agent = {
		name: AGENT,
		orchestrator: false,
		prompt: config.systemPrompt ?? SYSTEM_PROMPT,
		model,
		tools: toolRegistry(tools),
	};
	return {
		agents: new Map([[AGENT, agent]]),
		entry: AGENT,
		phase,
		phases,
		attemptsMaxOf: (_agent, name) => config.phases?.[name]?.attemptsMax ?? values.attemptsMax,
		strategy: STRATEGIES[config.termination ?? "enforcing"],
		limits: limitsOf(config),
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
function phasesOf({ phases = {} }: ReasonActConfig): Record<string, Phase> {
	const own = Object.entries(phases).map(([name, { enforce }]): [string, Phase] => [
		name,
		{ enforce: enforce ?? PHASES[name]?.enforce ?? true },
	]);
	return { ...PHASES, ...Object.fromEntries(own) };
}

function limitsOf(config: ReasonActConfig): RunLimits {
	const { modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax } = { ...RUN_LIMITS, ...config };
	return { ...RUN_LIMITS, modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax };
}
