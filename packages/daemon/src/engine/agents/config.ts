/** The `agents:` and `phases:` sections of `nexus.yaml`: who works, and how strict ends are. */

import type { ApprovalPolicy } from "@nexus-stream/protocol/engine";
import type { ConfigWords } from "../entry.ts";

/** The name in a routing decision that ends the run. */
export const END = "END";

const THINKING = ["off", "minimal", "low", "medium", "high"] as const;

export type PhasesConfig = Record<string, { enforce?: boolean; attemptsMax?: number }>;

/** Everything may be left out; what names a model falls back to the engine's own section. */
export interface AgentConfig {
	orchestrator?: boolean;
	/** A text, or a file with one. */
	prompt?: string;
	provider?: string;
	model?: string;
	thinking?: (typeof THINKING)[number];
	attemptsMax?: number;
	/** The agent that takes over when this one fails. */
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

/** @public How messages call what stands on the left of a map by tools. */
export const TOOLS_IN_WORDS = "tools, such as read or mcp__docs__*";

export const phasesConfigSchema = ({ byName, count, flag, group }: ConfigWords) =>
	byName(group({ enforce: flag, attemptsMax: count }), "a map from phases to { enforce, attemptsMax }");

export const agentsConfigSchema = (words: ConfigWords) => {
	const { byName, byTool, count, flag, group, ms, oneOf, text, texts } = words;
	const agent = group({
		orchestrator: flag,
		prompt: text("a text, or a file such as ./writer.md; relative to this file"),
		provider: text("openai, anthropic, google, scripted, or a name that the engine's section has"),
		model: text("a model's id"),
		thinking: oneOf(THINKING),
		attemptsMax: count,
		fallback: text("the name of an agent, or END"),
		visible: flag,
		tools: texts(`a list of ${TOOLS_IN_WORDS}`),
		approval: byTool(
			oneOf(["never", "non-owner", "always"]),
			`a map from ${TOOLS_IN_WORDS} to never, non-owner or always`,
		),
		timeoutMs: byTool(ms, `a map from ${TOOLS_IN_WORDS} to milliseconds`),
	});
	return byName(agent, "a map from names of agents to their configuration");
};
