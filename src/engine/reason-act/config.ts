/** The `reasonAct:`, `agents:` and `phases:` sections of `nexus.yaml`: how models are reached, who works, and the limits of the loop. */

import type { ConfigWords } from "../entry.ts";
import { type PiConfig, piConfigShape } from "../pi/entry.ts";
import type { ApprovalPolicy } from "../tools/tools.ts";

/** The provider that needs neither a network nor a key. */
export const SCRIPTED = "scripted";

/** Everything may be left out; `docs/reason-act.md` has the defaults. */
export interface ReasonActConfig extends PiConfig {
	/** With `provider: scripted`: a file of what the model says. */
	script?: string;
	/** In which a run begins. */
	phase?: string;
	/** In addition to the built-in ones, or in place of them. */
	phases?: PhasesConfig;
	termination?: "enforcing" | "lenient" | { module: string };
	attemptsMax?: number;
	modelCallsMax?: number;
	routesMax?: number;
	toolCallsMax?: number;
	tokensMax?: number;
	costUsdMax?: number;
	toolsParallelMax?: number;
	toolIndicatorGapMs?: number;
	toolDurationMs?: number;
	/** One shell command. */
	commandMs?: number;
	recentTransitionMs?: number;
	/** By tool. */
	timeoutMs?: Record<string, number>;
	retriesMax?: number;
	retryDelayMsMax?: number;
}

export type PhasesConfig = Record<string, { enforce?: boolean; attemptsMax?: number }>;

/** Everything may be left out; what names a model falls back to `reasonAct`. */
export interface AgentConfig {
	orchestrator?: boolean;
	/** A text, or a file with one. */
	prompt?: string;
	provider?: string;
	model?: string;
	thinking?: PiConfig["thinking"];
	attemptsMax?: number;
	/** Who goes on when it fails. */
	fallback?: string;
	/** Its words are shown to people; orchestrators' are not unless this says so. */
	visible?: boolean;
	/** Names of tools, a `*` at the end stands for any rest; left out = all. */
	tools?: string[];
	/** By tool. */
	approval?: Record<string, ApprovalPolicy>;
	/** By tool. */
	timeoutMs?: Record<string, number>;
}

const TOOLS = "tools, such as read or mcp__docs__*";

export const phasesConfigSchema = ({ byName, count, flag, group }: ConfigWords) =>
	byName(group({ enforce: flag, attemptsMax: count }), "a map from phases to { enforce, attemptsMax }");

export const agentsConfigSchema = (words: ConfigWords) => {
	const { byName, byTool, count, flag, group, ms, oneOf, text, texts } = words;
	const { model, thinking } = piConfigShape(words);
	const agent = group({
		orchestrator: flag,
		prompt: text("a text, or a file such as ./writer.md; relative to this file"),
		provider: text("openai, anthropic, google, scripted, or the name that reasonAct.provider has"),
		...{ model, thinking },
		attemptsMax: count,
		fallback: text("the name of an agent, or END"),
		visible: flag,
		tools: texts(`a list of ${TOOLS}`),
		approval: byTool(oneOf(["never", "non-owner", "always"]), `a map from ${TOOLS} to never, non-owner or always`),
		timeoutMs: byTool(ms, `a map from ${TOOLS} to milliseconds`),
	});
	return byName(agent, "a map from names of agents to their configuration");
};

export const reasonActConfigSchema = (words: ConfigWords) => {
	const { amount, byTool, count, countOrNone, group, ms, msOrNone, oneOfOrModule, text } = words;
	return group({
		...piConfigShape(words),
		provider: text("openai, anthropic, google, scripted, or any name together with baseUrl"),
		script: text("a file in YAML or JSON; relative to this file"),
		phase: text("the name of a phase"),
		phases: phasesConfigSchema(words),
		termination: oneOfOrModule(["enforcing", "lenient"], "./my-strategy.ts"),
		attemptsMax: count,
		modelCallsMax: count,
		routesMax: count,
		toolCallsMax: count,
		tokensMax: count,
		costUsdMax: amount,
		toolsParallelMax: count,
		toolIndicatorGapMs: msOrNone,
		toolDurationMs: ms,
		commandMs: ms,
		recentTransitionMs: msOrNone,
		timeoutMs: byTool(ms, `a map from ${TOOLS} to milliseconds`),
		retriesMax: countOrNone,
		retryDelayMsMax: ms,
	});
};
