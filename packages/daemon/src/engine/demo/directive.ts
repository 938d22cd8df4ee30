/** `/demo key=value …`: exactly the tokens, tools, cards and mishaps that a message asks for, and what to answer when it asks wrongly. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { clipCharacters } from "../../std/clip.ts";
import { seededRandom, seedOf, shuffled } from "../../std/seed.ts";
import { cardPart, PRODUCTS } from "./pieces.ts";
import { type DemoStep, inputTokens, proseLoop, tokensOf, toolSteps } from "./script.ts";

interface Key {
	what: string;
	/** The default values. */
	otherwise: string;
	min: number;
	max: number;
}

/** Every directive; the parser, its messages and the list shown to the user all come from this table. */
export const DIRECTIVE_KEYS = {
	tokens: { what: "exactly this many text tokens in the answer", otherwise: "120", min: 0, max: 10_000_000 },
	rate: { what: "tokens per second; 0 = as fast as possible", otherwise: "50", min: 0, max: 100_000 },
	reasoning: { what: "passages of reasoning", otherwise: "0", min: 0, max: 1_000 },
	tools: { what: "tool calls", otherwise: "0", min: 0, max: 1_000 },
	tool_ms: { what: "how long each tool takes", otherwise: "400, or 0 with rate=0", min: 0, max: 3_600_000 },
	cards: { what: "product cards", otherwise: "0", min: 0, max: 1_000 },
	messages: { what: "assistant messages that share the tokens", otherwise: "1", min: 1, max: 1_000 },
	fail_after: { what: "fail after this many tokens", otherwise: "never", min: 0, max: 10_000_000 },
	stall_after: { what: "go silent after this many tokens, until stopped", otherwise: "never", min: 0, max: 10_000_000 },
	seed: { what: "another text for another number", otherwise: "from the message", min: 0, max: 2 ** 32 - 1 },
} as const satisfies Record<string, Key>;

type KeyName = keyof typeof DIRECTIVE_KEYS;

export interface Directive {
	tokens: number;
	/** Tokens per second; 0 = without pausing. */
	rate: number;
	reasoning: number;
	tools: number;
	toolMs: number;
	cards: number;
	messages: number;
	failAfter?: number;
	stallAfter?: number;
	seed: number;
}

export type ParsedDirective =
	/** An ordinary message. */
	| { kind: "none" }
	| { kind: "directive"; directive: Directive }
	/** `/demo` was meant, but not understood (or nothing was asked): say how it works. */
	| { kind: "help"; problems: readonly string[] };

const TOKENS_DEFAULT = 120;
const RATE_DEFAULT = 50;
const TOOL_MS_DEFAULT = 400;

const isKey = (text: string): text is KeyName => Object.hasOwn(DIRECTIVE_KEYS, text);

/** Pure: the same text always parses to the same result. */
export function parseDirective(text: string): ParsedDirective {
	const [command, ...words] = text.trim().split(/\s+/u);
	if (command !== "/demo") return { kind: "none" };
	const given = new Map<KeyName, number>();
	const problems: string[] = [];
	for (const word of words) {
		const problem = readWord(word, given);
		if (problem !== undefined) problems.push(problem);
	}
	problems.push(...contradictions(given));
	if (problems.length > 0 || given.size === 0) return { kind: "help", problems };
	return { kind: "directive", directive: withDefaults(given, seedOf(text.trim())) };
}

/** Puts one `key=value` into `given`; returns what is wrong with it, if anything. */
function readWord(word: string, given: Map<KeyName, number>): string | undefined {
	const shown = clipCharacters(word, 40).replaceAll("`", "'");
	const [, name = "", digits = ""] = /^([a-z_]+)=(.*)$/su.exec(word) ?? [];
	if (name === "") return `\`${shown}\` is not of the form \`key=number\``;
	if (!isKey(name)) return `\`${shown}\`: there is no such key`;
	if (given.has(name)) return `\`${shown}\`: the key is given twice`;
	const { min, max } = DIRECTIVE_KEYS[name];
	const value = /^\d{1,10}$/.test(digits) ? Number(digits) : Number.NaN;
	if (!(value >= min && value <= max)) return `\`${shown}\`: a whole number from ${min} to ${max} is needed`;
	given.set(name, value);
	return undefined;
}

/** Things that could never happen as asked. */
function contradictions(given: ReadonlyMap<KeyName, number>): string[] {
	const tokens = given.get("tokens");
	const found: string[] = [];
	for (const name of ["fail_after", "stall_after"] as const) {
		const value = given.get(name);
		if (tokens !== undefined && value !== undefined && value > tokens)
			found.push(`\`${name}=${value}\` would never happen: the answer ends after ${tokens} tokens`);
	}
	const messages = given.get("messages") ?? 1;
	const shared = tokens ?? TOKENS_DEFAULT;
	if (messages > 1 && messages > shared) found.push(`\`messages=${messages}\` needs at least ${messages} tokens`);
	return found;
}

function withDefaults(given: ReadonlyMap<KeyName, number>, seed: number): Directive {
	const failAfter = given.get("fail_after");
	const stallAfter = given.get("stall_after");
	const rate = given.get("rate") ?? RATE_DEFAULT;
	return {
		tokens: given.get("tokens") ?? Math.max(TOKENS_DEFAULT, failAfter ?? 0, stallAfter ?? 0),
		rate,
		reasoning: given.get("reasoning") ?? 0,
		tools: given.get("tools") ?? 0,
		toolMs: given.get("tool_ms") ?? (rate === 0 ? 0 : TOOL_MS_DEFAULT),
		cards: given.get("cards") ?? 0,
		messages: given.get("messages") ?? 1,
		failAfter,
		stallAfter,
		seed: given.get("seed") ?? seed,
	};
}

/** The answer to a `/demo` that was not understood. */
export function directiveHelp(problems: readonly string[]): string {
	const rows = Object.entries(DIRECTIVE_KEYS).map(([name, key]) => `| \`${name}\` | ${key.what} | ${key.otherwise} |`);
	const shown = problems.slice(0, 8).map((problem) => `- ${problem}`);
	return [
		"**Demo engine: directives.**",
		...(shown.length === 0 ? [] : ["", "This was not understood:", "", ...shown]),
		"",
		"Write `/demo` and any of these, each as `key=number`:",
		"",
		"| key | meaning | if not given |",
		"|---|---|---|",
		...rows,
		"",
		"For example `/demo tokens=500 rate=50 reasoning=1 tools=2 cards=1`",
		"",
	].join("\n");
}

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
