/** The model port: one call of a model is one stream of events. Real models are pi-ai's. */

import type { AssistantMessage, AssistantMessageEvent, Message, ThinkingLevel, Tool } from "@earendil-works/pi-ai";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { type FailureContext, usageSum } from "../../kit/kit.ts";
import type { PiConfig } from "../../pi/entry.ts";
import { cacheKey, type LoadedModel, type Signer, signerOf } from "../../pi/pi.ts";

/** A tool that ran on the provider's side, as the provider reports it. A start may be missing, or come twice. */
export type ReportedTool =
	| { type: "tool_start"; id: string; name: string; args: unknown }
	| { type: "tool_complete"; id: string; name: string; result: string; failed?: boolean };

/** An event of a model. Events after `done` or `error` are ignored. */
export type LlmEvent = AssistantMessageEvent | ReportedTool;

export interface ModelRequest {
	/** The calling agent. */
	agent: string;
	/** Number of this agent's call in the run, from 0. */
	index: number;
	/** The run continues an interrupted one. */
	continued: boolean;
	session: string;
	systemPrompt: string;
	messages: Message[];
	tools: Tool[];
	signal: AbortSignal;
}

export interface ModelPort {
	/** Size of its context. */
	readonly contextTokensMax: number;
	/** For advice when it fails. */
	readonly failure: FailureContext;
	/** The signer whose reasoning it accepts. */
	readonly signer?: Signer | undefined;
	/** Failures are `error` events. */
	stream(call: ModelRequest): AsyncIterable<LlmEvent>;
	/** The error says that the context is too long. */
	isOverflow(message: AssistantMessage): boolean;
	/** The same call may succeed a moment later. */
	isPassing(message: AssistantMessage): boolean;
}

export interface PiModelOptions {
	thinking: PiConfig["thinking"];
	failure: FailureContext;
	retriesMax: number;
	retryDelayMsMax: number;
}

/** Share of the context window reserved for the answer. */
const ANSWER_SHARE = 0.15;

export async function piModel({ model, models }: LoadedModel, options: PiModelOptions): Promise<ModelPort> {
	const { clampThinkingLevel, isContextOverflow } = await import("@earendil-works/pi-ai");
	const { thinking, failure, retriesMax, retryDelayMsMax } = options;
	const level = clampThinkingLevel(model, thinking ?? "off");
	const reasoning = level === "off" ? {} : { reasoning: level as ThinkingLevel };
	return {
		contextTokensMax: Math.floor(model.contextWindow * (1 - ANSWER_SHARE)),
		failure,
		signer: signerOf(model, level, failure.apiKey),
		stream: ({ systemPrompt, messages, tools, signal, session }) =>
			models.streamSimple(
				model,
				{ systemPrompt, messages, tools },
				{
					...reasoning,
					signal,
					sessionId: cacheKey(session),
					maxRetries: retriesMax,
					maxRetryDelayMs: retryDelayMsMax,
				},
			),
		isOverflow: (message) => isContextOverflow(message, model.contextWindow),
		// pi-ai has already retried as long as the provider asked for.
		isPassing: () => false,
	};
}

/** Tokens of a run by agent. */
export function usageByAgent() {
	const sums = new Map<string, { model: string; sum: ReturnType<typeof usageSum> }>();
	let isTaken = false;

	function taken(agent: string, named: boolean): EngineEvent[] {
		const own = sums.get(agent);
		if (own === undefined) return [];
		sums.delete(agent);
		isTaken = true;
		return [{ ...own.sum.event(), model: own.model, ...(named && { agent }) }];
	}

	return {
		/** Adds one answered call; a compatible server may report anything. */
		add({ agent, model }: { agent: string; model: string }, usage: AssistantMessage["usage"] | undefined) {
			const [input, output, cacheRead, cacheWrite, costUsd] = [
				usage?.input,
				usage?.output,
				usage?.cacheRead,
				usage?.cacheWrite,
				usage?.cost?.total,
			].map((value) => (Number.isFinite(value) ? Math.max(0, value!) : 0)) as [number, number, number, number, number];
			const own = sums.get(agent) ?? { model, sum: usageSum() };
			sums.set(agent, own);
			own.sum.add({ input, output, cacheRead, cacheWrite });
			return { tokens: input + output + cacheRead + cacheWrite, costUsd };
		},
		/** Usage of one agent since the last call. */
		take: (agent: string) => taken(agent, true),
		/** The remaining usage; unknown usage if there was none at all. `named`: with the agents' names. */
		rest(named: boolean): EngineEvent[] {
			const events = [...sums.keys()].flatMap((agent) => taken(agent, named));
			return events.length > 0 || isTaken ? events : [usageSum().event()];
		},
	};
}
