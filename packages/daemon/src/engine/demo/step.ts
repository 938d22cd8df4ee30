/** The steps of a demo answer: events, and the pauses and failures between them. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";

export type DemoStep =
	| EngineEvent
	/** Nothing for so long (a tool at work). */
	| { type: "wait"; ms: number }
	/** Silence until the run is stopped. */
	| { type: "stall" }
	| { type: "fail"; message: string };

export interface DemoScript {
	/** Tokens per second; 0 = without pausing. */
	rate: number;
	steps: Iterable<DemoStep>;
}

export interface DemoToolCall {
	callId: string;
	name: string;
	args: unknown;
	/** Said half way through. */
	progress: string;
	summary: string;
	result: unknown;
}

/** One tool call with live status, or one that fails because it may not take as long as it would. */
export function toolSteps(call: DemoToolCall, toolMs: number, timeoutMs: number): DemoStep[] {
	const { callId, name, args, progress, summary, result } = call;
	const wait = (ms: number): DemoStep[] => (ms > 0 ? [{ type: "wait", ms }] : []);
	const started: DemoStep = { type: "tool", callId, name, status: "started", args, summary: `${name} started` };
	if (toolMs > timeoutMs) {
		const late = `${name} took longer than ${timeoutMs} ms`;
		return [started, ...wait(timeoutMs), { type: "tool", callId, name, status: "failed", summary: late, result: late }];
	}
	return [
		started,
		...wait(toolMs / 2),
		{ type: "tool", callId, name, status: "progress", summary: progress },
		...wait(toolMs / 2),
		{ type: "tool", callId, name, status: "completed", summary, result },
	];
}
