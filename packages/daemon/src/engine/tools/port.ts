/** What a tool is: offered to a model, run by an engine. */

import type { ContentPart } from "@nexus-stream/protocol";
import type { ApprovalOutcome, ApprovalPolicy, EngineRequest } from "@nexus-stream/protocol/engine";

/** What a running tool does, in a line for people. */
export type Describe = (args: Readonly<Record<string, unknown>>, name: string) => string;

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a person is asked. */
export interface ToolQuestion {
	question: string;
	/** Between what to choose; left out = any answer. */
	choices?: readonly string[];
}

export interface ToolContext {
	/** Unique in the run. */
	callId: string;
	/** Who calls it. */
	agent: string;
	/** Aborts when its time is over, the run is stopped, or a terminal tool has ended the work. */
	signal: AbortSignal;
	/** What the run answers, for whom and with which rights. */
	request: EngineRequest;
	/** Shared by the tools of the run. */
	state: CustomState;
	/** Shown to people while it runs. */
	progress(text: string): void;
	/** What the person said to the tool's `asks`. */
	answer?: ApprovalOutcome;
	/** Asks the run's sender while the tool runs; the run's clocks stand still, the tool's own limit does not. Left out where nobody can be asked. */
	ask?(question: ToolQuestion, signal: AbortSignal): Promise<ApprovalOutcome>;
}

/** A rejection is a failure, too: the model is told, and the run goes on. */
export interface ToolResult {
	content: readonly ContentPart[];
	failed?: boolean;
}

export interface Tool {
	name: string;
	description: string;
	/** Of its arguments. */
	parameters: JsonSchema;
	/** Left out: the default. */
	timeoutMs?: number;
	/** Higher starts earlier; 0 when left out. */
	priority?: number;
	/** Its success ends the attempt. */
	terminal?: boolean;
	/** Runs while no other tool does. */
	exclusive?: boolean;
	/** Left out: as its name says (`policyOf`). A tool can only be stricter than that. */
	approval?: ApprovalPolicy;
	/** What the run's sender is asked before it acts: it gets the answer in its context. */
	asks?(args: Record<string, unknown>): ToolQuestion;
	/** Of a tool that comes from outside: changes with what it says about itself. A remembered approval holds for one revision only. */
	revision?: string;
	describe?: Describe;
	/** The arguments fit `parameters`. */
	execute(args: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
}

/** A part of the state that tools may use as they like: JSON, survives a retry and is in a checkpoint. */
export interface CustomState {
	setState(key: string, value: unknown): void;
	getState(key: string): unknown;
	hasState(key: string): boolean;
	getAllState(): Readonly<Record<string, unknown>>;
}

/** Where tools come from that are not known before a run begins: an MCP server, a memory bank. */
export interface ToolSource {
	/** In words, for logs. */
	readonly name: string;
	/** Those that this run may be offered. Never rejects: a source that is down offers tools that fail with the reason, or none. */
	tools(request: EngineRequest): Promise<readonly Tool[]>;
	close?(): Promise<void>;
}

export const TOOL_NAMES: readonly string[] = [
	"ask",
	"bash",
	"edit",
	"forget",
	"learn",
	"read",
	"recall",
	"remember",
	"time",
	"write",
];
