/** The steps of a demo answer, and its text cut into tokens that join back to exactly the text. */

import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";

export type DemoStep =
	| EngineEvent
	/** Nothing for so long (a tool at work). */
	| { type: "wait"; ms: number }
	/** Silence until the run is stopped. */
	| { type: "stall" }
	| { type: "fail"; message: string };

interface DemoToolCall {
	name: string;
	args: unknown;
	/** Said half way through. */
	progress: string;
	summary: string;
	result: unknown;
}

/** A run's tool call of this number with live status, or one that fails because it may not take as long as it would. */
export function toolSteps(call: DemoToolCall, number: number, ms: number, request: EngineRequest): DemoStep[] {
	const { name, args, progress, summary, result } = call;
	const { runId, toolTimeoutMs } = request;
	const tool = { type: "tool", callId: `${runId}:tool-${number}`, name } as const;
	const started: DemoStep = { ...tool, status: "started", args, summary: `${name} started` };
	if (ms > toolTimeoutMs) {
		const late = `${name} took longer than ${toolTimeoutMs} ms`;
		return [started, { type: "wait", ms: toolTimeoutMs }, { ...tool, status: "failed", summary: late, result: late }];
	}
	const half: DemoStep[] = ms > 0 ? [{ type: "wait", ms: ms / 2 }] : [];
	const ended: DemoStep = { ...tool, status: "completed", summary, result };
	return [started, ...half, { ...tool, status: "progress", summary: progress }, ...half, ended];
}

/** Cuts text into tokens: a word with the white space before it, long words in pieces. Joined, they are the text. */
export const tokensOf = (text: string): string[] => text.match(/\s*\S{1,16}|\s+$/gu) ?? [];

export const say = (text: string): EngineEvent[] => tokensOf(text).map((delta) => ({ type: "text", delta }));

export const think = (text: string): EngineEvent[] => tokensOf(text).map((delta) => ({ type: "reasoning", delta }));

/** The usage of an answer, with the context counted in the demo's own tokens. */
export function usageStep({ messages }: EngineRequest, output: number): EngineEvent {
	return { type: "usage", input: messages.reduce((sum, { text }) => sum + tokensOf(text).length, 0), output };
}
