/** State that all agents of a run share, its limits, and its snapshots for checkpoints. */

/** Limits of one run, whichever agents take part in it. */
export interface RunLimits {
	modelCallsMax: number;
	routesMax: number;
	toolCallsMax: number;
	/** Input and output together, over all model calls. */
	tokensMax: number;
	/** In US dollars, by the prices that the provider's list has. */
	costUsdMax: number;
	/** Limit of the text, and of the reasoning, of one activation. */
	bufferCharsMax: number;
	/** Reasoning blocks that are remembered, so that the execution log has each once. */
	thinkingBlocksMax: number;
	/** Custom state of tools, as JSON. */
	customCharsMax: number;
}

export const RUN_LIMITS: RunLimits = {
	modelCallsMax: 64,
	routesMax: 16,
	toolCallsMax: 256,
	tokensMax: 2_000_000,
	costUsdMax: 10,
	bufferCharsMax: 1024 * 1024,
	thinkingBlocksMax: 1000,
	customCharsMax: 64 * 1024,
};

/** One agent at work in one phase; an attempt is its whole tool loop until the model stops. */
export interface Activation {
	agent: string;
	phase: string;
	/** From 1. */
	attempt: number;
}

export type CallStatus = "announced" | "started" | "completed" | "failed";

export interface RunToolCall {
	/** Unique in the run. */
	callId: string;
	/** The model's own id: may be empty or repeated. */
	modelId: string;
	name: string;
	args: unknown;
	/** The agent that made the call. */
	agent: string;
	status: CallStatus;
	/** The result for the model. */
	result?: string;
}

/** A terminal tool that ended its activation. */
export interface TerminalCall {
	callId: string;
	name: string;
	args: unknown;
}

/** The end of a call. */
export interface Ended {
	call: RunToolCall;
	/** The call had never started: readers need the start first. */
	missingStart: boolean;
}

export interface Used {
	modelCalls: number;
	routes: number;
	toolCalls: number;
	tokens: number;
	costUsd: number;
}

/** The limit that forbids one more model call, in words. */
export function limitReached(used: Used, limits: RunLimits): string | undefined {
	const { modelCalls, routes, toolCalls, tokens, costUsd } = used;
	const { modelCallsMax, routesMax, toolCallsMax, tokensMax, costUsdMax } = limits;
	if (modelCalls >= modelCallsMax) return `the model was called ${modelCalls} times in one run (modelCallsMax)`;
	if (routes > routesMax) return `agents were routed ${routes} times in one run (routesMax ${routesMax})`;
	if (toolCalls > toolCallsMax)
		return `the model asked for ${toolCalls} tool calls in one run (toolCallsMax ${toolCallsMax})`;
	if (tokens >= tokensMax) return `the run used ${tokens} tokens (tokensMax ${tokensMax})`;
	if (costUsd >= costUsdMax) return `the run cost ${costUsd.toFixed(2)} US dollars (costUsdMax ${costUsdMax})`;
	return undefined;
}

/** JSON: the part of a checkpoint that belongs to the whole run. */
export interface StateSnapshot {
	used: Used;
	attempts: Record<string, number>;
	calls: RunToolCall[];
	custom: Record<string, unknown>;
}

/** JSON: the part of a checkpoint that belongs to one active agent. */
export interface LaneSnapshot {
	activation: Activation;
	hasSpoken: boolean;
	terminal?: TerminalCall | undefined;
}

/** State that all lanes of a run share. */
export class SharedState {
	calls: RunToolCall[] = [];
	readonly callIds = new Set<string>();
	readonly thinking = new Set<string>();
	/** Executions by agent and phase. */
	attempts = new Map<string, number>();
	custom = new Map<string, unknown>();
	used: Used = { modelCalls: 0, routes: 0, toolCalls: 0, tokens: 0, costUsd: 0 };

	static from(snapshot: StateSnapshot): SharedState {
		const shared = new SharedState();
		const { used, attempts, calls, custom } = structuredClone(snapshot);
		shared.used = used;
		shared.attempts = new Map(Object.entries(attempts));
		shared.custom = new Map(Object.entries(custom));
		shared.calls = calls;
		for (const { callId } of calls) shared.callIds.add(callId);
		return shared;
	}
}
