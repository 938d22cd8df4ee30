/** The state that the agents of a run share, with its limits; and the run at a tool's boundary as JSON: enough to go on from there without running a completed tool again. */

import type { Message, ToolResultMessage } from "@earendil-works/pi-ai";
import { NexusError } from "@nexus-stream/protocol";
import type { Continued, EngineRequest } from "@nexus-stream/protocol/engine";
import { toolResult, toPiMessages } from "../pi/pi.ts";

/** Limits of one run, whichever agents take part in it. */
export const RUN_LIMITS = {
	modelCallsMax: 64,
	routesMax: 16,
	toolCallsMax: 256,
	/** Input and output together, over all model calls. */
	tokensMax: 2_000_000,
	/** In US dollars, by the prices that the provider's list has. */
	costUsdMax: 10,
	/** Limit of the text, and of the reasoning, of one activation. */
	bufferCharsMax: 1024 * 1024,
	/** Reasoning blocks that are remembered, so that the execution log has each once. */
	thinkingBlocksMax: 1000,
	/** Custom state of tools, as JSON. */
	customCharsMax: 64 * 1024,
};
export type RunLimits = typeof RUN_LIMITS;

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
export type TerminalCall = Pick<RunToolCall, "callId" | "name" | "args">;

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
	custom = new Map<string, unknown>();
	used: Used = { modelCalls: 0, routes: 0, toolCalls: 0, tokens: 0, costUsd: 0 };

	static from(snapshot: StateSnapshot): SharedState {
		const shared = new SharedState();
		const { used, calls, custom } = structuredClone(snapshot);
		shared.used = used;
		shared.custom = new Map(Object.entries(custom));
		shared.calls = calls;
		for (const { callId } of calls) shared.callIds.add(callId);
		return shared;
	}
}

export interface PhaseChange {
	from: string;
	because: string;
	at: number;
}

export interface Checkpoint {
	version: 1;
	state: StateSnapshot;
	phase: string;
	transition?: PhaseChange;
	/** The active agents: one, or several in parallel. */
	lanes: LaneSnapshot[];
	/** The agents that follow; those in one group work in parallel. */
	line: string[][];
	/** Hand-over notes of the agents. */
	notes: AgentNote[];
	/** By agent: what it has said, done and read in this run, behind the session's own. The last message of one at work may wait for results. */
	threads: Record<string, Thread>;
	/** Words of people that arrived during the run. */
	injected: Message[];
	/** Model calls by agent. */
	calls: Record<string, number>;
}

/** An agent's own part of a run. */
export interface Thread {
	messages: Message[];
	/** How many of the run's notes, and of the words that arrived during the run, are in it. */
	notesRead: number;
	injectedRead: number;
}

/** A hand-over note to the other agents: why it routed, or what it has done. */
export interface AgentNote {
	agent: string;
	text: string;
}

/** Undefined: the run was interrupted before its first boundary, and starts over. */
export function checkpointOf(continued: Continued | undefined): Checkpoint | undefined {
	const checkpoint = continued?.checkpoint as Checkpoint | null | undefined;
	if (!checkpoint) return undefined;
	if (checkpoint.version === 1) return checkpoint;
	throw new NexusError("conflict", "the checkpoint was made by another version; send the message again");
}

/** Behind words that a person has seen already. */
export const GO_ON =
	"Your answer was cut off here, and people have read it up to this point. Go on exactly where it stops. Do not repeat any of it, and do not apologise.";

/** Text shown after the checkpoint, as the model's own interrupted message. */
export function interrupted(request: EngineRequest, timestamp: number): Message[] {
	const shown = request.continues?.shown ?? "";
	if (shown === "") return [];
	const asked = { role: "user" as const, text: GO_ON };
	return toPiMessages(
		{ ...request, messages: [{ role: "assistant", text: shown }, asked], attachments: [] },
		timestamp,
	);
}

const UNKNOWN =
	"outcome unknown: the run was cut off while this tool ran. It may have acted; it was not run again. Check before you repeat it.";
const NEVER_RAN = "never ran: the run was cut off before this tool began. Call it again if it is still needed.";

/** Results for the calls that a run was cut off at: completed tools keep theirs, nothing is run again by itself. `answered` gets its own. */
export function missingResults(
	messages: readonly Message[],
	state: StateSnapshot,
	timestamp: number,
	answered?: string,
): ToolResultMessage[] {
	const byId = new Map(state.calls.map((call) => [call.callId, call]));
	return unansweredIn(messages).flatMap((callId): ToolResultMessage[] => {
		const call = byId.get(callId);
		if (call === undefined || call.callId === answered) return [];
		const status = call.status === "completed" ? "completed" : "failed";
		return [toolResult({ id: callId, name: call.name, result: outcomeOf(call), status }, timestamp)];
	});
}

/** Calls of the model's last message that have no result behind it: some may have theirs, when the run was cut off before. */
function unansweredIn(messages: readonly Message[]): string[] {
	const at = messages.findLastIndex(({ role }) => role === "assistant");
	const last = messages[at];
	if (last?.role !== "assistant") return [];
	const answered = new Set(
		messages.slice(at + 1).map((message) => message.role === "toolResult" && message.toolCallId),
	);
	return last.content.flatMap((part) => (part.type === "toolCall" && !answered.has(part.id) ? [part.id] : []));
}

/** Drops the results that a model has read: the threads have them, and a checkpoint must not hold them twice. */
export function leanCalls(calls: readonly RunToolCall[], threads: Iterable<Thread>): RunToolCall[] {
	const waiting = new Set([...threads].flatMap(({ messages }) => unansweredIn(messages)));
	return calls.map((call) => {
		const isOver = call.status === "completed" || call.status === "failed";
		if (!isOver || waiting.has(call.callId)) return call;
		const { args: _, result: __, ...rest } = call;
		return { ...rest, args: null };
	});
}

function outcomeOf({ status, result }: RunToolCall): string {
	if (status === "announced") return NEVER_RAN;
	return status === "started" ? UNKNOWN : (result ?? "");
}
