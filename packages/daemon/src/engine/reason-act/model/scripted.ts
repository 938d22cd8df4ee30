/** The scripted model: offline, repeatable, labelled. It says what a script tells it to, or what the message itself asks for. */

import type { AssistantMessage } from "@earendil-works/pi-ai";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import { parse } from "yaml";
import { z } from "zod";
import { seededRandom, seedOf } from "../../../std/seed.ts";
import { GO_ON } from "../checkpoint.ts";
import type { LlmEvent, ModelPort, ModelRequest } from "./model.ts";

/** One answer of the model. Everything may be left out. */
const STEP = z.strictObject({
	/** The agent whose call it answers; without it, any agent's. */
	agent: z.string().optional(),
	reasoning: z.string().optional(),
	text: z.string().optional(),
	calls: z
		.array(z.strictObject({ name: z.string(), args: z.unknown().optional(), id: z.string().optional() }))
		.optional(),
	/** It fails instead, after what it says. `status` 429 and 5xx pass by themselves, `untilContinued` once the run is continued. */
	error: z
		.strictObject({
			message: z.string(),
			status: z.int().optional(),
			untilContinued: z.boolean().optional(),
		})
		.optional(),
	/** Before the first word. */
	waitMs: z.int().min(0).max(600_000).optional(),
	/** 0 = all at once. */
	tokensPerSecond: z.number().min(0).optional(),
});

const SCRIPT = z.strictObject({ seed: z.int().optional(), steps: z.array(STEP).min(1).max(1000) });

export type ModelScript = z.infer<typeof SCRIPT>;
type ModelScriptStep = z.infer<typeof STEP>;

/** A message that is a script itself begins with this line. */
const DIRECTIVE = "/script\n";

const CONTEXT_TOKENS_MAX = 128_000;
const TOKENS_PER_SECOND = 50;

/** YAML or JSON: `{ seed?, steps }`, or the steps alone. */
export function parseScript(text: string, name: string): ModelScript {
	let value: unknown;
	try {
		value = parse(text);
	} catch (cause) {
		throw new NexusError("config", `${name} is not YAML: ${wordsOf(cause)}`, { cause });
	}
	const checked = SCRIPT.safeParse(Array.isArray(value) ? { steps: value } : value);
	if (checked.success) return checked.data;
	const [issue] = checked.error.issues;
	throw new NexusError("config", `${name}: ${issue?.path.join(".") || "the script"}: ${issue?.message ?? "is wrong"}`);
}

export function scriptedModel(script: ModelScript | undefined, clock: Clock): ModelPort {
	return {
		contextTokensMax: CONTEXT_TOKENS_MAX,
		failure: { provider: "scripted", model: "scripted", keySource: "", apiKey: "", section: "reasonAct" },
		stream: (call) => play(unspokenRest(stepFor(call, script), call), call, script?.seed ?? 0, clock),
		isOverflow: ({ errorMessage }) => /context length/.test(errorMessage ?? ""),
		isPassing: ({ errorMessage }) => /^(?:429|5\d\d)\b/.test(errorMessage ?? ""),
	};
}

function stepFor(call: ModelRequest, configured: ModelScript | undefined): ModelScriptStep {
	const newest = newestWords(call);
	if (!newest.startsWith(DIRECTIVE)) return stepOf(call, configured) ?? echo(newest);
	try {
		return stepOf(call, parseScript(newest.slice(DIRECTIVE.length), "this script"))!;
	} catch (cause) {
		return { text: `Scripted model: ${wordsOf(cause)}.` };
	}
}

/** The nth of an agent's own steps; after the last one there is nothing more to say. */
function stepOf({ agent, index }: ModelRequest, script: ModelScript | undefined): ModelScriptStep | undefined {
	if (script === undefined) return undefined;
	const own = script.steps.filter((step) => step.agent === undefined || step.agent === agent);
	return own[index] ?? { text: "Scripted model: the script is over." };
}

const echo = (text: string): ModelScriptStep => ({
	text: `Scripted model, no real one: you said “${text.slice(0, 500)}”. Begin a message with a line \`/script\` to tell it what to answer.`,
});

/** The person's newest message: reminders and notes of the loop come after it and have no script. */
function newestWords({ messages }: ModelRequest): string {
	const users = messages.filter((message) => message.role === "user").map(({ content }) => content);
	const texts = users.map((content) =>
		typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : "")).join("\n"),
	);
	return texts.findLast((text) => text.startsWith(DIRECTIVE)) ?? texts.findLast((text) => text !== GO_ON) ?? "";
}

/** After an interruption it yields only the rest of its text. */
function unspokenRest(step: ModelScriptStep, { messages }: ModelRequest): ModelScriptStep {
	const [cut, told] = messages.slice(-2);
	if (told?.role !== "user" || told.content !== GO_ON || cut?.role !== "assistant") return step;
	const shown = cut.content.map((part) => (part.type === "text" ? part.text : "")).join("");
	const { reasoning: _thought, text = "", ...rest } = step;
	return text.startsWith(shown) ? { ...rest, text: text.slice(shown.length) } : step;
}

async function* play(step: ModelScriptStep, call: ModelRequest, seed: number, clock: Clock): AsyncGenerator<LlmEvent> {
	const { reasoning = "", text = "", calls = [], waitMs = 0, tokensPerSecond = TOKENS_PER_SECOND } = step;
	const { signal } = call;
	const error = step.error?.untilContinued && call.continued ? undefined : step.error;
	const random = seededRandom(seedOf(text) ^ seed);
	const message = messageOf(step, call);
	const gapMs = tokensPerSecond === 0 ? 0 : 1000 / tokensPerSecond;
	await sleep(clock, waitMs, signal, "due");
	for (const [type, words] of [["thinking_delta", reasoning] as const, ["text_delta", text] as const]) {
		for (const delta of piecesOf(words, random)) {
			if (signal.aborted) break;
			yield { type, contentIndex: 0, delta, partial: message };
			if (gapMs > 0) await sleep(clock, gapMs, signal, "due");
		}
	}
	if (signal.aborted) yield { type: "error", reason: "aborted", error: { ...message, stopReason: "aborted" } };
	else if (error) {
		const errorMessage = error.status === undefined ? error.message : `${error.status} ${error.message}`;
		yield { type: "error", reason: "error", error: { ...message, stopReason: "error", errorMessage } };
	} else yield { type: "done", reason: calls.length > 0 ? "toolUse" : "stop", message };
}

/** One to three words at a time; the same text always in the same pieces. */
function piecesOf(text: string, random: () => number): string[] {
	const words = text.match(/\s*\S+\s*/g) ?? (text === "" ? [] : [text]);
	const pieces: string[] = [];
	for (let at = 0; at < words.length; ) {
		const count = 1 + Math.floor(random() * 3);
		pieces.push(words.slice(at, at + count).join(""));
		at += count;
	}
	return pieces;
}

function messageOf({ reasoning = "", text = "", calls = [] }: ModelScriptStep, call: ModelRequest): AssistantMessage {
	const input = Math.ceil(JSON.stringify(call.messages).length / 4);
	const output = Math.max(1, Math.ceil((reasoning.length + text.length) / 4));
	const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
	return {
		role: "assistant",
		api: "scripted",
		provider: "scripted",
		model: "scripted",
		timestamp: 0,
		content: [
			...(text === "" ? [] : [{ type: "text" as const, text }]),
			...calls.map(({ name, args = {}, id }, n) => ({
				type: "toolCall" as const,
				id: id ?? `call_${call.agent}_${call.index}_${n}`,
				name,
				arguments: args as never,
			})),
		],
		usage: { input, output, cacheRead: 0, cacheWrite: 0, totalTokens: input + output, cost: free },
		stopReason: calls.length > 0 ? "toolUse" : "stop",
	};
}
