/** The steps of a demo answer, and the text in them: cut into tokens that join back to exactly the text, and made-up prose of any length. */

import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { seededRandom, shuffled } from "../../std/seed.ts";

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

interface DemoToolCall {
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

/** Cuts text into tokens: a word with the white space before it, long words in pieces. Joined, they are the text. */
export function tokensOf(text: string): string[] {
	return text.match(/\s*\S{1,16}|\s+$/gu) ?? [];
}

/** How many tokens the context would be, cut as the demo cuts its own text. */
export const inputTokens = ({ messages }: EngineRequest): number =>
	messages.reduce((sum, { text }) => sum + tokensOf(text).length, 0);

const LABEL = "Demo engine: this text is made up to try things out.";

const SENTENCES = [
	"A log is an ordered sequence of records, and everything that streams is one.",
	"Producers append at the end, and consumers read at their own pace.",
	"A record becomes visible only once it is durable.",
	"A reader that is slow is simply further behind, and costs no memory.",
	"Reconnecting, replaying and joining late are the same thing seen from different moments.",
	"The number of a record says where it stands, so nothing is lost and nothing comes twice.",
	"The river carried the letters past the mill, one after another, without hurry.",
	"Every stone on the path had a number, and the numbers had no holes.",
	"She counted the lanterns from the harbour to the hill and wrote the sum on a card.",
	"**Order matters** more than speed, but it is pleasant to have both.",
	"A checksum at the end lets anyone verify what arrived, in any language.",
	"Stop means stop, and closing the window does not.",
	"What was said before the interruption is kept, because it was said.",
	"The baker opened at six, the post at seven, and the library whenever it rained.",
	"An agent is an async generator: it yields, returns, throws or is stopped.",
	"Use `Last-Event-ID` to carry on exactly where the connection broke.",
	"Nine small boats waited for the tide; the tenth had already gone.",
	"Anything that has no limit will one day meet it.",
	"The clock is an argument, which makes tomorrow easy to test.",
	"Grüße aus Zürich, 你好 from Shanghai, and a wave 👋 from here.",
	"No reader noticed the restart, which was the point of it.",
	"The map was folded so often that the mountains had become a valley.",
	"Two people who watch the same answer see the same words.",
	"When the last word is written, the line below it says so.",
] as const;

const SENTENCES_PER_PARAGRAPH = 4;

/**
 * Made-up prose as ready events, to be repeated in a circle for as many tokens as are wanted. Every delta carries the
 * white space before it; only the very first token of an answer has none (`first`).
 */
export function proseLoop(seed: number): { first: EngineEvent; loop: readonly EngineEvent[] } {
	const sentences = [LABEL, ...shuffled(SENTENCES, seededRandom(seed))];
	const text = sentences.map((s, i) => (i % SENTENCES_PER_PARAGRAPH === 0 ? "\n\n" : " ") + s).join("");
	const deltas = tokensOf(text);
	return {
		first: { type: "text", delta: deltas[0]!.trimStart() },
		loop: deltas.map((delta) => ({ type: "text", delta })),
	};
}
