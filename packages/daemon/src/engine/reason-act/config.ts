/** The `reasonAct:` section of `nexus.yaml`: how the model is reached, and the limits of the loop. */

import { type PhasesConfig, phasesConfigSchema, TOOLS_IN_WORDS } from "../agents.ts";
import type { ConfigWords } from "../entry.ts";
import { type PiConfig, piConfigShape } from "../pi/entry.ts";
import { ATTEMPTS_MAX } from "./termination.ts";

/** The provider that needs neither a network nor a key. */
export const SCRIPTED = "scripted";

/** Everything may be left out; `docs/reason-act.md` has the defaults. Folders are the matter of `tools:`. */
export interface ReasonActConfig extends Omit<PiConfig, "filesRoot"> {
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

export const reasonActConfigSchema = (words: ConfigWords) => {
	const { amount, byTool, count, countOrNone, group, ms, msOrNone, oneOfOrModule, text } = words;
	const { filesRoot: _, ...model } = piConfigShape(words);
	return group({
		...model,
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
		timeoutMs: byTool(ms, `a map from ${TOOLS_IN_WORDS} to milliseconds`),
		retriesMax: countOrNone,
		retryDelayMsMax: ms,
	});
};

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
