/** The answer to `/demo …`: exactly the tokens, tools, cards and mishaps that were asked for. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { seededRandom, shuffled } from "../../std/seed.ts";
import type { Directive } from "./directive.ts";
import { cardPart, PRODUCTS } from "./pieces.ts";
import { type DemoStep, toolSteps } from "./step.ts";
import { proseLoop, tokensOf } from "./words.ts";

const TOOL_NAMES = ["search", "calculate", "look_up", "summarise"] as const;

/** Steps that come before the token of that number (0 = before the first), in order of number. */
type Interlude = { before: number; steps: readonly DemoStep[] };

export function* madeUpSteps(directive: Directive, request: EngineRequest): Generator<DemoStep, void, undefined> {
	const { first, loop } = proseLoop(directive.seed);
	const failAt = directive.failAfter ?? Number.POSITIVE_INFINITY;
	const stallAt = directive.stallAfter ?? Number.POSITIVE_INFINITY;
	const last = Math.min(directive.tokens, failAt, stallAt);
	const interludes = interludesOf(directive, request);
	let next = 0;
	for (let token = 0; token <= last; token++) {
		while (next < interludes.length && interludes[next]!.before <= token) yield* interludes[next++]!.steps;
		if (token === last) break;
		yield token === 0 ? first : loop[token % loop.length]!;
	}
	if (last === failAt) yield { type: "fail", message: `failed after ${failAt} tokens, as the directive asked` };
	else if (last === stallAt) yield { type: "stall" };
	else yield { type: "usage", input: inputTokens(request), output: directive.tokens };
}

/** How many tokens the context would be, cut as the demo cuts its own text. */
export function inputTokens(request: EngineRequest): number {
	return request.messages.reduce((sum, message) => sum + tokensOf(message.text).length, 0);
}

/** Where reasoning, tools, cards and new messages stand between the tokens: each kind spread evenly, a card before a new message. */
function interludesOf(directive: Directive, request: EngineRequest): Interlude[] {
	const { tokens, seed } = directive;
	const products = shuffled(PRODUCTS, seededRandom(seed));
	const result: Interlude[] = [];
	for (let k = 0; k < directive.cards; k++) {
		const before = Math.floor(((k + 1) * tokens) / (directive.cards + 1));
		result.push({ before, steps: [cardPart(products[k % products.length]!)] });
	}
	for (let k = 1; k < directive.messages; k++)
		result.push({ before: Math.floor((k * tokens) / directive.messages), steps: [{ type: "message" }] });
	for (let k = 0; k < directive.reasoning; k++)
		result.push({ before: Math.floor((k * tokens) / directive.reasoning), steps: reasoningSteps(k + 1) });
	for (let k = 0; k < directive.tools; k++)
		result.push({ before: Math.floor((k * tokens) / directive.tools), steps: madeUpTool(k, directive, request) });
	return result.sort((a, b) => a.before - b.before);
}

function reasoningSteps(number: number): DemoStep[] {
	const text = `Demo reasoning, passage ${number}. The directive asks for made-up text, so there is nothing to find out: count the tokens, keep the pace, and stop when asked.`;
	return tokensOf(text).map((delta) => ({ type: "reasoning", delta }));
}

function madeUpTool(index: number, directive: Directive, request: EngineRequest): DemoStep[] {
	const call = {
		callId: `${request.runId}:tool-${index + 1}`,
		name: TOOL_NAMES[index % TOOL_NAMES.length]!,
		args: { number: index + 1, of: directive.tools },
		progress: "half done",
		summary: `tool ${index + 1} of ${directive.tools} is done`,
		result: { number: index + 1, ok: true },
	};
	return toolSteps(call, directive.toolMs, request.toolTimeoutMs);
}
