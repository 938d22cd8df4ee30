/** The `reasonAct:` section of `nexus.yaml`: how the model is reached, and the limits of the loop. */

import type { ConfigWords } from "../entry.ts";
import { type PiConfig, piConfigShape } from "../pi/entry.ts";

/** The provider that needs neither a network nor a key. */
export const SCRIPTED = "scripted";

/** Everything may be left out; `docs/reason-act.md` has the defaults. Folders are the matter of `tools:`. */
export interface ReasonActConfig extends Omit<PiConfig, "filesRoot"> {
	/** With `provider: scripted`: a file of what the model says. */
	script?: string;
	/** In which a run begins. */
	phase?: string;
	/** In addition to the built-in ones, or in place of them. */
	phases?: Record<string, { enforce?: boolean; attemptsMax?: number }>;
	termination?: "enforcing" | "lenient";
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
	const { amount, byName, count, countOrNone, flag, group, ms, msOrNone, oneOf, text } = words;
	const { filesRoot: _, ...model } = piConfigShape(words);
	return group({
		...model,
		provider: text("openai, anthropic, google, scripted, or any name together with baseUrl"),
		script: text("a file in YAML or JSON; relative to this file"),
		phase: text("the name of a phase"),
		phases: byName(group({ enforce: flag, attemptsMax: count }), "a map from phases to { enforce, attemptsMax }"),
		termination: oneOf(["enforcing", "lenient"]),
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
		timeoutMs: byName(ms, "a map from tools to milliseconds"),
		retriesMax: countOrNone,
		retryDelayMsMax: ms,
	});
};
