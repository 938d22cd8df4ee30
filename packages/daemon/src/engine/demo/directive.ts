/** `/demo key=value …`: exactly the tokens, tools, cards and mishaps that a message asks for, and what to answer when it asks wrongly. */

import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { clipCharacters } from "../../std/clip.ts";
import { seededRandom, seedOf, shuffled } from "../../std/seed.ts";
import { cardPart, PRODUCTS } from "./pieces.ts";
import { type DemoStep, say, think, toolSteps, usageStep } from "./script.ts";

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
} as const satisfies Record<string, { what: string; otherwise: string; min: number; max: number }>;

type KeyName = keyof typeof DIRECTIVE_KEYS;
type Given = Partial<Record<KeyName, number>>;
type Mishap = "fail_after" | "stall_after";

/** By the keys of the table; a mishap that was not asked for never happens. */
export type Directive = Record<Exclude<KeyName, Mishap>, number> & Partial<Record<Mishap, number>>;

export type ParsedDirective =
	/** An ordinary message. */
	| { kind: "none" }
	| { kind: "directive"; directive: Directive }
	/** `/demo` was meant, but not understood (or nothing was asked): say how it works. */
	| { kind: "help"; problems: readonly string[] };

const TOKENS_DEFAULT = 120;

const isKey = (text: string): text is KeyName => Object.hasOwn(DIRECTIVE_KEYS, text);

/** Pure: the same text always parses to the same result. */
export function parseDirective(text: string): ParsedDirective {
	const [command, ...words] = text.trim().split(/\s+/u);
	if (command !== "/demo") return { kind: "none" };
	const given: Given = {};
	const problems = words.map((word) => readWord(word, given)).filter((problem) => problem !== undefined);
	problems.push(...contradictions(given));
	if (problems.length > 0 || words.length === 0) return { kind: "help", problems };
	return { kind: "directive", directive: withDefaults(given, seedOf(text.trim())) };
}

/** Puts one `key=value` into `given`; returns what is wrong with it, if anything. */
function readWord(word: string, given: Given): string | undefined {
	const shown = clipCharacters(word, 40).replaceAll("`", "'");
	const [, name = "", digits = ""] = /^([a-z_]+)=(.*)$/su.exec(word) ?? [];
	if (name === "") return `\`${shown}\` is not of the form \`key=number\``;
	if (!isKey(name)) return `\`${shown}\`: there is no such key`;
	if (given[name] !== undefined) return `\`${shown}\`: the key is given twice`;
	const { min, max } = DIRECTIVE_KEYS[name];
	const value = /^\d{1,10}$/.test(digits) ? Number(digits) : Number.NaN;
	if (!(value >= min && value <= max)) return `\`${shown}\`: a whole number from ${min} to ${max} is needed`;
	given[name] = value;
	return undefined;
}

/** Things that could never happen as asked. */
function contradictions(given: Given): string[] {
	const { tokens = Number.POSITIVE_INFINITY, messages = 1 } = given;
	const found = (["fail_after", "stall_after"] as const)
		.filter((name) => (given[name] ?? 0) > tokens)
		.map((name) => `\`${name}=${given[name]}\` would never happen: the answer ends after ${tokens} tokens`);
	if (messages > 1 && messages > (given.tokens ?? TOKENS_DEFAULT))
		found.push(`\`messages=${messages}\` needs at least ${messages} tokens`);
	return found;
}

function withDefaults(given: Given, seed: number): Directive {
	const { rate = 50, fail_after = 0, stall_after = 0 } = given;
	const tokens = Math.max(TOKENS_DEFAULT, fail_after, stall_after);
	const tool_ms = rate === 0 ? 0 : 400;
	return { tokens, rate, reasoning: 0, tools: 0, tool_ms, cards: 0, messages: 1, seed, ...given };
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

const LABEL = "Demo engine: this text is made up to try things out.";

const SENTENCES = [
	"A log is an ordered sequence of records, and everything that streams is one.",
	"Producers append at the end, and consumers read at their own pace.",
	"A reader that is slow is simply further behind, and costs no memory.",
	"The number of a record says where it stands, so nothing is lost and nothing comes twice.",
	"The river carried the letters past the mill, one after another, without hurry.",
	"She counted the lanterns from the harbour to the hill and wrote the sum on a card.",
	"**Order matters** more than speed, but it is pleasant to have both.",
	"The baker opened at six, the post at seven, and the library whenever it rained.",
	"An agent is an async generator: it yields, returns, throws or is stopped.",
	"Use `Last-Event-ID` to carry on exactly where the connection broke.",
	"Grüße aus Zürich, 你好 from Shanghai, and a wave 👋 from here.",
	"When the last word is written, the line below it says so.",
] as const;

const SENTENCES_PER_PARAGRAPH = 4;

/** Ready events, to be repeated in a circle for as many tokens as are wanted. Every delta carries the white space before it. */
function proseLoop(seed: number): EngineEvent[] {
	const sentences = [LABEL, ...shuffled(SENTENCES, seededRandom(seed))];
	return say(sentences.map((s, i) => (i % SENTENCES_PER_PARAGRAPH === 0 ? "\n\n" : " ") + s).join(""));
}

export function* madeUpSteps(directive: Directive, request: EngineRequest): Generator<DemoStep, void, undefined> {
	const { tokens, seed, fail_after: failAt = Number.POSITIVE_INFINITY } = directive;
	const { stall_after: stallAt = Number.POSITIVE_INFINITY } = directive;
	const loop = proseLoop(seed);
	const last = Math.min(tokens, failAt, stallAt);
	const interludes = interludesOf(directive, request);
	let next = 0;
	for (let token = 0; token <= last; token++) {
		while (next < interludes.length && interludes[next]!.before <= token) yield* interludes[next++]!.steps;
		if (token === last) break;
		yield token === 0 ? say(LABEL)[0]! : loop[token % loop.length]!;
	}
	if (last === failAt) yield { type: "fail", message: `failed after ${failAt} tokens, as the directive asked` };
	else if (last === stallAt) yield { type: "stall" };
	else yield usageStep(request, tokens);
}

/** Steps that come before the token of that number (0 = before the first). */
type Interlude = { before: number; steps: readonly DemoStep[] };

/** Where reasoning, tools, cards and new messages stand between the tokens: each kind spread evenly, a card before a new message. */
function interludesOf(directive: Directive, request: EngineRequest): Interlude[] {
	const { tokens, cards, messages, reasoning, tools, tool_ms } = directive;
	const products = shuffled(PRODUCTS, seededRandom(directive.seed));
	const result: Interlude[] = [];
	const spread = (first: number, parts: number, stepsOf: (part: number) => readonly DemoStep[]) => {
		for (let k = first; k < parts; k++) result.push({ before: Math.floor((k * tokens) / parts), steps: stepsOf(k) });
	};
	spread(1, cards + 1, (k) => [cardPart(products[k % products.length]!)]);
	spread(1, messages, () => [{ type: "message" }]);
	spread(0, reasoning, (k) => think(reasoningText(k + 1)));
	spread(0, tools, (k) => toolSteps(madeUpTool(k + 1, tools), k + 1, tool_ms, request));
	return result.sort((a, b) => a.before - b.before);
}

const reasoningText = (number: number): string =>
	`Demo reasoning, passage ${number}. The directive asks for made-up text, so there is nothing to find out: count the tokens, keep the pace, and stop when asked.`;

const madeUpTool = (number: number, of: number) => ({
	name: ["search", "calculate", "look_up", "summarise"][(number - 1) % 4]!,
	args: { number, of },
	progress: "half done",
	summary: `tool ${number} of ${of} is done`,
	result: { number, ok: true },
});
