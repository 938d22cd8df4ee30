/** What a loop is made of, once configuration is out of the way. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { Counters } from "../../std/counters.ts";
import { fitsGlob } from "../../std/globs.ts";
import type { ApprovalPolicy, Describe, ToolRegistry, ToolSource, ValidateArguments } from "../tools/tools.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { ModelPort } from "./model/model.ts";
import type { RunLimits } from "./state.ts";
import type { PhaseRules, TerminationStrategy } from "./termination.ts";

export interface AgentSpec {
	name: string;
	/** Routes the others; at most one of them. */
	orchestrator: boolean;
	/** Its words are shown to people. */
	visible: boolean;
	prompt: string;
	model: ModelPort;
	tools: ToolRegistry;
	/** Of all tools, its own and the house's, those that it may use; a `*` at the end stands for any rest. Left out = all. */
	toolNames?: readonly string[] | undefined;
	/** By tool, in place of the tool's own policy. */
	approval?: Readonly<Record<string, ApprovalPolicy>> | undefined;
	/** By tool, before everybody's. */
	timeoutMs?: Readonly<Record<string, number>> | undefined;
	/** Of one activation; left out = what the phase or everybody has. */
	attemptsMax?: number | undefined;
	/** Who goes on when it fails; for an orchestrator also where the run goes when it does not route: an agent, or `END`. */
	fallback?: string | undefined;
}

export interface LoopSetup {
	agents: ReadonlyMap<string, AgentSpec>;
	/** Who begins. */
	entry: string;
	/** Who gets the run back from the others; undefined with one agent. */
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
	/** By tool, in place of its own description. */
	describe?: Readonly<Record<string, Describe>>;
	/** By tool, in place of its own. */
	priority?: Readonly<Record<string, number>>;
	counters?: Counters | undefined;
	/** By tool. Never beyond what the request allows. */
	timeoutMs: Readonly<Record<string, number>>;
	/** Least gap between two progress lines of a run; it never delays a tool. */
	toolIndicatorGapMs: number;
	/** How long tools usually take; shown when one takes longer. */
	durations: Durations;
	recentTransitionMs: number;
	/** After an abort, how long a tool may take to let go. */
	toolSettleMs: number;
	/** Of one model call, before its first token. */
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

export interface Durations {
	add(tool: string, ms: number): void;
	/** The default until something was seen. */
	usualMs(tool: string): number;
	/** When a person should learn that it takes longer: nobody has to know that of 2 ms. */
	noticeMs(tool: string): number;
}

export function durations(defaultMs: number): Durations {
	const seen = new Map<string, number[]>();
	const usualMs = (tool: string): number => {
		const times = seen.get(tool)?.toSorted((a, b) => a - b);
		return times?.[Math.floor(times.length / 2)] ?? defaultMs;
	};
	return {
		add(tool, ms) {
			const times = seen.get(tool) ?? [];
			if (times.length === 0 && seen.size >= TOOLS_MAX) return;
			times.push(ms);
			if (times.length > TIMES_MAX) times.shift();
			seen.set(tool, times);
		},
		usualMs,
		noticeMs: (tool) => Math.max(defaultMs, usualMs(tool)),
	};
}
