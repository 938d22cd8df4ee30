/** Helpers of the reason-act tests: models made of events, engines with defaults, and views of what they yield. */

import type { AssistantMessage } from "@earendil-works/pi-ai";
import type { AgentConfig } from "../../../packages/daemon/src/engine/agents/agents.ts";
import { AGENT, agentSpec } from "../../../packages/daemon/src/engine/reason-act/agents.ts";
import type { ReasonActConfig } from "../../../packages/daemon/src/engine/reason-act/config.ts";
import type { LlmEvent, ModelPort, ModelRequest } from "../../../packages/daemon/src/engine/reason-act/model/model.ts";
import { reasonActEngine, setupFor } from "../../../packages/daemon/src/engine/reason-act/reason-act.ts";
import type { LoopSetup } from "../../../packages/daemon/src/engine/reason-act/setup.ts";
import { type Tool, textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { toolRegistry } from "../../../packages/daemon/src/engine/tools/tools.ts";
import { type Clock, systemClock } from "../../../packages/protocol/src/clock.ts";
import type { EngineEvent } from "../../../packages/protocol/src/engine.ts";

type Part = AssistantMessage["content"][number];

export const toolOf = (name: string, fields: Partial<Tool> = {}): Tool => ({
	name,
	description: name,
	parameters: { type: "object", properties: {} },
	execute: async () => textResult(`${name} done`),
	...fields,
});

export const text = (words: string): Part => ({ type: "text", text: words });
export const asks = (name: string, args: object = {}, id = `id_${name}`): Part => ({
	type: "toolCall",
	id,
	name,
	arguments: args as never,
});

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

export const messageOf = (content: Part[], fields: Partial<AssistantMessage> = {}): AssistantMessage => ({
	role: "assistant",
	api: "a",
	provider: "p",
	model: "m",
	timestamp: 0,
	content,
	usage: { input: 3, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 5, cost: NO_COST },
	stopReason: content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop",
	...fields,
});

export const delta = (words: string): LlmEvent => ({
	type: "text_delta",
	contentIndex: 0,
	delta: words,
	partial: messageOf([]),
});

/** A whole answer: its text in one delta, then the message. */
export function answer(...content: Part[]): LlmEvent[] {
	const words = content.flatMap((part) => (part.type === "text" ? [delta(part.text)] : []));
	return [...words, { type: "done", reason: "stop", message: messageOf(content) }];
}

export const refusal = (errorMessage: string): LlmEvent[] => [
	{ type: "error", reason: "error", error: messageOf([], { stopReason: "error", errorMessage }) },
];

export interface Spoken {
	model: ModelPort;
	/** Each call of the model, with its messages as they were. */
	calls: ModelRequest[];
}

/** Answers the nth call with the nth list of events; the last one again and again. */
export function modelOf(answers: readonly (readonly LlmEvent[])[], fields: Partial<ModelPort> = {}): Spoken {
	const calls: ModelRequest[] = [];
	const model: ModelPort = {
		contextTokensMax: 100_000,
		failure: { provider: "p", model: "m", keySource: "K", apiKey: "", section: "reasonAct" },
		async *stream(call) {
			const events = answers[Math.min(calls.length, answers.length - 1)] ?? [];
			calls.push({ ...call, messages: structuredClone(call.messages) });
			yield* events;
		},
		isOverflow: ({ errorMessage = "" }) => errorMessage.includes("too long"),
		isPassing: ({ errorMessage = "" }) => errorMessage.startsWith("429"),
		...fields,
	};
	return { model, calls };
}

export interface Options {
	config?: ReasonActConfig;
	tools?: Tool[];
	setup?: Partial<LoopSetup>;
	model?: Partial<ModelPort>;
}

export async function engineOf(answers: readonly (readonly LlmEvent[])[], options: Options = {}) {
	const { model, calls } = modelOf(answers, options.model);
	const setup = await setupOf(options.config ?? {}, model, options.tools ?? []);
	return { engine: reasonActEngine({ ...setup, ...options.setup }), calls };
}

export type Answers = readonly (readonly LlmEvent[])[];

export interface TeamOptions {
	config?: ReasonActConfig;
	agents?: Record<string, AgentConfig>;
	tools?: Tool[];
	setup?: Partial<LoopSetup>;
}

/** A lead, and agents by name with what their models say. */
export async function teamOf(answers: Record<string, Answers>, options: TeamOptions = {}) {
	const spoken = Object.entries(answers).map(([name, said]) => ({ name, ...modelOf(said) }));
	const tools = toolRegistry(options.tools ?? []);
	const agents = spoken.map(({ name, model }) =>
		agentSpec(
			name,
			{ orchestrator: name === "lead", ...options.agents?.[name] },
			{ model, tools, prompt: `You are ${name}.` },
		),
	);
	const setup = await setupFor(agents, options.config ?? {}, ".", systemClock);
	const calls = Object.fromEntries(spoken.map(({ name, calls }) => [name, calls]));
	return { engine: reasonActEngine({ ...setup, ...options.setup }), setup: { ...setup, ...options.setup }, calls };
}

export const routes = (agents: string[], more: object = {}) => answer(asks("route", { agents, reason: "go", ...more }));
export const completes = (summary: string) => answer(asks("complete", { response: `${summary}!`, summary }));

/** The visible output, in order: texts, and calls by name. */
export const shown = (events: readonly EngineEvent[]): string[] =>
	events.flatMap((event) => {
		if (event.type === "tool") return [`${event.callId} ${event.status}`];
		if (event.type === "text" || event.type === "reasoning")
			return event.delta === "" ? [] : [`${event.type} ${event.delta}`];
		if (event.type === "usage" || event.type === "log" || event.type === "checkpoint") return [];
		return [event.type === "compaction" ? `compaction ${event.phase}` : event.type];
	});

/** One agent, its tools and the configured limits. */
export function setupOf(
	config: ReasonActConfig,
	model: ModelPort,
	tools: readonly Tool[],
	clock: Clock = systemClock,
): Promise<LoopSetup> {
	const parts = { model, tools: toolRegistry(tools), prompt: config.systemPrompt };
	return setupFor([agentSpec(AGENT, {}, parts)], config, process.cwd(), clock);
}
