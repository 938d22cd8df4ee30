/** The `reason-act` engine: models that reason and tools that act, with several agents, enforced ends, limits and several tools at once. The door of this folder. */

import { createHash } from "node:crypto";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import type { PhasesConfig } from "../agents/agents.ts";
import type { EngineSetup } from "../entry.ts";
import { builtInTools, describeBy, type ToolsConfig, toolRegistry } from "../tools/tools.ts";
import { type AgentsConfig, agentsOf } from "./agents.ts";
import { type Checkpoint, checkpointOf } from "./checkpoint.ts";
import { REASON_ACT_DEFAULTS, type ReasonActConfig, SCRIPTED } from "./config.ts";
import { reasonAct } from "./loop.ts";
import type { AgentSpec, LoopSetup } from "./setup.ts";
import { durations } from "./setup.ts";
import { RUN_LIMITS, type RunLimits } from "./shared-state.ts";
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
	const setup: LoopSetup = { checkpoint: asEvent, ...given };
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

const asEvent = (data: Checkpoint): EngineEvent => ({ type: "checkpoint", data });

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
function phasesOf({ phases = {} }: ReasonActConfig): Record<string, PhaseRules> {
	const own = Object.entries(phases).map(([name, { enforce }]): [string, PhaseRules] => [
		name,
		{ enforce: enforce ?? PHASES[name]?.enforce ?? true },
	]);
	return { ...PHASES, ...Object.fromEntries(own) };
}

function limitsOf(config: ReasonActConfig): RunLimits {
	const { modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax } = withDefaults(RUN_LIMITS, config);
	return { ...RUN_LIMITS, modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax };
}
