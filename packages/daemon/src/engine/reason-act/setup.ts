/** Everything a loop needs, independent of the configuration format. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { Counters } from "../../std/counters.ts";
import { fitsGlob } from "../../std/globs.ts";
import type { AgentConfig } from "../agents.ts";
import type { Describe, ToolSource } from "../tool.ts";
import type { ToolRegistry, ValidateArguments } from "../tools/tools.ts";
import type { Checkpoint, RunLimits } from "./checkpoint.ts";
import type { ModelPort } from "./model/model.ts";
import type { PhaseRules, TerminationStrategy } from "./termination.ts";

/** The only agent there is without an `agents` section. */
export const AGENT = "main";

export interface AgentSpec extends Pick<AgentConfig, "approval" | "timeoutMs" | "attemptsMax" | "fallback"> {
	name: string;
	/** Routes the others; at most one of them. */
	orchestrator: boolean;
	/** Its words are shown to people. */
	visible: boolean;
	prompt: string;
	model: ModelPort;
	tools: ToolRegistry;
	/** The tools that it may use, its own and those of sources; a `*` at the end stands for any rest. Left out = all. */
	toolNames?: readonly string[] | undefined;
}

export interface LoopSetup {
	agents: ReadonlyMap<string, AgentSpec>;
	/** The first agent. */
	entry: string;
	/** The agent that the others return to; undefined with one agent. */
	orchestrator?: string | undefined;
	/** In which a run begins. */
	phase: string;
	phases: Readonly<Record<string, PhaseRules>>;
	attemptsMaxOf(agent: string, phase: string): number;
	strategy: TerminationStrategy;
	limits: RunLimits;
	toolsParallelMax: number;
	/** Asked at the beginning of each run. */
	toolSources?: readonly ToolSource[];
	/** Descriptions by tool, which replace the tool's own. */
	describe?: Readonly<Record<string, Describe>>;
	/** Priorities by tool, which replace the tool's own. */
	priority?: Readonly<Record<string, number>>;
	counters?: Counters | undefined;
	/** By tool. Never beyond what the request allows. */
	timeoutMs: Readonly<Record<string, number>>;
	/** Least gap between two progress lines of a run; it never delays a tool. */
	toolIndicatorGapMs: number;
	/** How long tools usually take; shown when one takes longer. */
	durations: ReturnType<typeof durations>;
	recentTransitionMs: number;
	/** After an abort, how long a tool may take to let go. */
	toolSettleMs: number;
	/** Retries of one model call, before its first token. */
	retriesMax: number;
	retryDelayMsMax: number;
	validate: ValidateArguments;
	/** Asked at every boundary of a tool: the event that carries the checkpoint, yielded together with the tool's. */
	checkpoint?(checkpoint: Checkpoint): EngineEvent | undefined;
	clock: Clock;
}

export function forTool<T>(settings: Readonly<Record<string, T>> | undefined, tool: string): T | undefined {
	if (settings === undefined) return undefined;
	if (Object.hasOwn(settings, tool)) return settings[tool];
	const glob = Object.keys(settings).find((name) => name.endsWith("*") && fitsGlob(tool, name));
	return glob === undefined ? undefined : settings[glob];
}

/** Tools that are remembered, and times of each. */
const TOOLS_MAX = 256;
const TIMES_MAX = 31;

/** How long each tool took. */
export function durations(defaultMs: number) {
	const seen = new Map<string, number[]>();
	/** The default until something was seen. */
	const usualMs = (tool: string): number => {
		const times = seen.get(tool)?.toSorted((a, b) => a - b);
		return times?.[Math.floor(times.length / 2)] ?? defaultMs;
	};
	return {
		add(tool: string, ms: number): void {
			const times = seen.get(tool) ?? [];
			if (times.length === 0 && seen.size >= TOOLS_MAX) return;
			times.push(ms);
			if (times.length > TIMES_MAX) times.shift();
			seen.set(tool, times);
		},
		usualMs,
		/** When to show that it takes longer than usual; never earlier than the default. */
		noticeMs: (tool: string) => Math.max(defaultMs, usualMs(tool)),
	};
}
