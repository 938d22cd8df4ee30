/** The `reasonAct:` section of `nexus.yaml`: how the model is reached, and the limits of the loop. */

import type { z } from "zod";
import { phasesConfigSchema, TOOLS_IN_WORDS } from "../agents.ts";
import type { ConfigWords } from "../entry.ts";
import { piConfigShape } from "../pi/entry.ts";
import { ATTEMPTS_MAX } from "./termination.ts";

/** The provider that needs neither a network nor a key. */
export const SCRIPTED = "scripted";

/** Everything may be left out; `docs/reason-act.md` has the defaults. Folders are the matter of `tools:`. */
export const reasonActConfigSchema = (words: ConfigWords) => {
	const { amount, byTool, count, countOrNone, group, ms, msOrNone, oneOfOrModule, text } = words;
	const { filesRoot: _, ...model } = piConfigShape(words);
	return group({
		...model,
		provider: text("openai, anthropic, google, scripted, or any name together with baseUrl"),
		/** With `provider: scripted`: what the model says. */
		script: text("a file in YAML or JSON; relative to this file"),
		/** In which a run begins. */
		phase: text("the name of a phase"),
		/** In addition to the built-in ones, or in place of them. */
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
		/** One shell command. */
		commandMs: ms,
		recentTransitionMs: msOrNone,
		timeoutMs: byTool(ms, `a map from ${TOOLS_IN_WORDS} to milliseconds`),
		retriesMax: countOrNone,
		retryDelayMsMax: ms,
	});
};

export type ReasonActConfig = z.infer<ReturnType<typeof reasonActConfigSchema>>;

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
