/** What a loop is made of, once configuration is out of the way. */

import type { Clock } from "../../std/clock.ts";
import type { EngineEvent, EngineRequest } from "../port.ts";
import type { ToolRegistry, ValidateArguments } from "../tools/tools.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { Durations } from "./durations.ts";
import type { ModelPort } from "./model.ts";
import type { Permit, ReadyCall } from "./schedule.ts";
import type { RunLimits } from "./state.ts";
import type { Phase, TerminationStrategy } from "./termination.ts";

export interface AgentSpec {
	name: string;
	/** Routes the others; at most one of them. */
	orchestrator: boolean;
	prompt: string;
	model: ModelPort;
	tools: ToolRegistry;
	/** What it may call of the tools that only a run knows; left out = all of them. A `*` at the end stands for any rest. */
	toolNames?: readonly string[] | undefined;
	/** Where an orchestrator's run goes that does not route: an agent, or `END`. */
	fallback?: string | undefined;
}

/** Asks whoever may approve. It commits what it has to before it answers; the signal withdraws the question. */
export type Approve = (
	call: ReadyCall,
	about: { agent: string; request: EngineRequest; signal: AbortSignal },
) => Permit | Promise<Permit>;

export interface LoopSetup {
	agents: ReadonlyMap<string, AgentSpec>;
	/** Who begins. */
	entry: string;
	/** Who gets the run back from the others; undefined with one agent. */
	orchestrator?: string | undefined;
	/** In which a run begins. */
	phase: string;
	phases: Readonly<Record<string, Phase>>;
	attemptsMaxOf(agent: string, phase: string): number;
	strategy: TerminationStrategy;
	limits: RunLimits;
	toolsParallelMax: number;
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
	/** For tools whose policy is not `never`; left out = these are refused. */
	approve?: Approve;
	/** Asked at every boundary of a tool: the event that carries the checkpoint, yielded together with the tool's. */
	checkpoint?(checkpoint: Checkpoint): EngineEvent | undefined;
	clock: Clock;
}
