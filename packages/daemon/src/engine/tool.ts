/** The tool port: a tool is offered to a model and run by an engine, whichever source it comes from. */

import type { ContentPart } from "@nexus-stream/protocol";
import type { ApprovalOutcome, ApprovalPolicy, EngineRequest } from "@nexus-stream/protocol/engine";

/** Describes a running tool in one line for people. */
export type Describe = (args: Readonly<Record<string, unknown>>, name: string) => string;

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A question to a person. */
export interface ToolQuestion {
	question: string;
	/** Between what to choose; left out = any answer. */
	choices?: readonly string[];
}

export interface ToolContext {
	/** Unique in the run. */
	callId: string;
	/** The calling agent. */
	agent: string;
	/** Aborts when its time is over, the run is stopped, or a terminal tool has ended the work. */
	signal: AbortSignal;
	/** The run's request, with its sender and rights. */
	request: EngineRequest;
	/** Shared by the tools of the run. */
	state: CustomState;
	/** Shown to people while it runs. */
	progress(text: string): void;
	/** The person's answer to the tool's `asks`. */
	answer?: ApprovalOutcome;
	/** Asks the run's sender while the tool runs: pauses the run's deadlines, but not the tool's own limit. Left out when the run has no person to ask. */
	ask?(question: ToolQuestion, signal: AbortSignal): Promise<ApprovalOutcome>;
}

/** A rejection is a failed result: the model reads it, and the run continues. */
export interface ToolResult {
	content: readonly ContentPart[];
	failed?: boolean;
}

export interface Tool {
	name: string;
	description: string;
	/** Schema of its arguments. */
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
	/** A question to the run's sender before the tool acts; its context has the answer. */
	asks?(args: Record<string, unknown>): ToolQuestion;
	/** Revision of a foreign tool, which changes with its description. A remembered approval holds for one revision only. */
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
	/** The tools for this run. Never rejects: a source that is down offers tools that fail with the reason, or none. */
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

export const textResult = (text: string): ToolResult => ({ content: [{ type: "text", text }] });
