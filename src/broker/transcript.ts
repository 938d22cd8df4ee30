/** What was said and done in one run so far: the part of it that becomes a turn. No I/O. */

import type { EngineEvent } from "../engine/engine.ts";
import type { StoredMessage, StoredPart, StoredToolCall, Turn } from "../ledger/ledger.ts";
import type { SignedReasoning, Usage } from "../protocol/protocol.ts";
import { GrowingText } from "../std/growing-text.ts";
import { type Ending, statusOf, unpairedSummary } from "./ending.ts";
import { storedPart } from "./part-note.ts";
import type { LiveToolCall } from "./port.ts";
import { fitContent } from "./tool-content.ts";

type ToolReport = Omit<Extract<EngineEvent, { type: "tool" }>, "type">;
type Signed = Pick<Extract<EngineEvent, { type: "signed_reasoning" }>, "text" | "signature" | "after">;

/** Of one message; an engine that sends sound in pieces sends many. */
const PARTS_MAX = 200;

interface Answer {
	readonly messageId: string;
	readonly text: GrowingText;
	readonly reasoning: GrowingText;
	parts?: StoredPart[];
	signedReasoning?: SignedReasoning[];
}

const answerOf = (messageId: string): Answer => ({ messageId, text: new GrowingText(), reasoning: new GrowingText() });

export interface TranscriptOptions {
	runId: string;
	session: string;
	engine: string;
	startedAt: number;
	/** The run that it continues. */
	continues?: string | undefined;
	/** The user's messages that the run answers. */
	asked: readonly StoredMessage[];
	/** The run's first text stream. */
	textId: string;
	/** Reasoning is kept up to here; 0 = not at all. */
	reasoningCharsMax: number;
	/** Of all messages together. */
	signedReasoningCharsMax: number;
	/** Of all tool calls together. */
	toolContentCharsMax: number;
}

export class Transcript {
	readonly #options: TranscriptOptions;
	readonly #answers: [Answer, ...Answer[]];
	#answer: Answer;
	/** In order of starting. */
	readonly #calls: LiveToolCall[] = [];
	readonly #running = new Map<string, LiveToolCall>();
	#firstTextAt: number | undefined;
	#signedChars = 0;
	#contentChars = 0;
	#usage: Usage = { input: -1, output: -1 };

	constructor(options: TranscriptOptions) {
		this.#options = options;
		this.#answer = answerOf(options.textId);
		this.#answers = [this.#answer];
	}

	get usage(): Usage {
		return this.#usage;
	}

	get firstTokenMs(): number | undefined {
		return this.#firstTextAt === undefined ? undefined : this.#firstTextAt - this.#options.startedAt;
	}

	/** When the tool that has been running longest was started. */
	get oldestToolAt(): number | undefined {
		// One that waits for a person is not running.
		let oldest: number | undefined;
		for (const { asking, startedAt } of this.#running.values())
			if (asking?.state !== "pending" && (oldest === undefined || startedAt < oldest)) oldest = startedAt;
		return oldest;
	}

	/** Characters of each assistant message so far, by its id. */
	get lengths(): Record<string, number> {
		return Object.fromEntries(this.#answers.map(({ messageId, text }) => [messageId, text.length]));
	}

	/** All that the user was told so far. */
	get text(): string {
		return this.#answers.map(({ text }) => text.toString()).join("\n\n");
	}

	get messages(): StoredMessage[] {
		const { asked, reasoningCharsMax } = this.#options;
		const answers = this.#answers.map(({ text, reasoning, ...answer }): StoredMessage => {
			const kept = reasoning.toString().slice(0, reasoningCharsMax).toWellFormed();
			return { role: "assistant", ...answer, text: text.toString(), ...(kept !== "" && { reasoning: kept }) };
		});
		return [...asked, ...answers];
	}

	get toolCalls(): LiveToolCall[] {
		return this.#calls.map((call) => ({ ...call }));
	}

	/** An event that was framed; `textId` is the text stream it belongs to. */
	take(event: EngineEvent, textId: string, now: number): void {
		if (event.type === "text") this.say(event.delta, textId, now);
		else if (event.type === "reasoning") this.reason(event.delta, textId);
		else if (event.type === "signed_reasoning") this.#sign(event, textId);
		else if (event.type === "tool") this.tool(event, textId, now);
		else if (event.type === "part") this.part(event, textId);
		else if (event.type === "usage") this.#addUsage(event);
	}

	say(delta: string, textId: string, now: number): void {
		if (delta === "") return;
		this.#firstTextAt ??= now;
		this.#turnTo(textId).text.push(delta);
	}

	reason(delta: string, textId: string): void {
		const { reasoningCharsMax } = this.#options;
		if (reasoningCharsMax === 0 || delta === "") return;
		const { reasoning } = this.#turnTo(textId);
		// Cut and made well-formed when it is asked for: a character may come in two deltas.
		if (reasoning.length < reasoningCharsMax) reasoning.push(delta);
	}

	/** Whole or not at all: a provider takes its own words back unchanged only. */
	#sign({ text, signature, after }: Signed, textId: string): void {
		const chars = text.length + signature.length;
		if (this.#signedChars + chars > this.#options.signedReasoningCharsMax) return;
		this.#signedChars += chars;
		const answer = this.#turnTo(textId);
		const said = answer.text.length;
		answer.signedReasoning ??= [];
		answer.signedReasoning.push({
			...{ text, signature, after: Math.min(after ?? said, said) },
			callsBefore: this.#calls.filter(({ message }) => message === this.#message).length,
		});
	}

	/** What is beyond the limit stays in the frames. */
	part(part: { modality: string; contentType: string; payload: string }, textId: string): void {
		const answer = this.#turnTo(textId);
		answer.parts ??= [];
		if (answer.parts.length < PARTS_MAX) answer.parts.push(storedPart(part, answer.text.length));
	}

	tool(report: ToolReport, textId: string, now: number): void {
		const call = this.#running.get(report.callId) ?? this.#start(report, textId, now);
		// Its time counts from when it was allowed to act.
		if (report.status === "started" && call.asking) call.startedAt = now;
		if (report.asking !== undefined) call.asking = report.asking;
		if (report.args !== undefined) call.args = jsonText(report.args);
		if (report.summary !== undefined) call.summary = report.summary;
		if (report.status !== "completed" && report.status !== "failed") return;
		if (report.result !== undefined) call.result = jsonText(report.result);
		if (report.content !== undefined) this.#keepContent(call, report.content);
		call.status = report.status;
		call.endedAt = now;
		this.#running.delete(report.callId);
	}

	/** The turn that this becomes. A call without an outcome is paired with a failure. */
	turn(ending: Ending, endedAt: number): Turn {
		const { runId, session, engine, startedAt, continues } = this.#options;
		const turn: Turn = {
			...{ runId, session, engine, startedAt, endedAt },
			status: statusOf(ending.reason),
			reason: ending.reason,
			usage: this.#usage,
			messages: this.messages,
			toolCalls: this.#calls.map((call) => settled(call, ending, endedAt)),
		};
		if (continues !== undefined) turn.continues = continues;
		if (ending.error) turn.error = ending.error;
		if (this.firstTokenMs !== undefined) turn.firstTokenMs = this.firstTokenMs;
		return turn;
	}

	#start(report: ToolReport, textId: string, now: number): LiveToolCall {
		const after = this.#turnTo(textId).text.length;
		const message = this.#message;
		const call: LiveToolCall = {
			...{ callId: report.callId, name: report.name, status: "started", message, after, startedAt: now },
		};
		this.#calls.push(call);
		this.#running.set(report.callId, call);
		return call;
	}

	#keepContent(call: LiveToolCall, content: NonNullable<ToolReport["content"]>): void {
		const fitted = fitContent(content, this.#options.toolContentCharsMax - this.#contentChars);
		this.#contentChars += fitted.chars;
		call.content = fitted.content;
	}

	/** Index of the newest message. */
	get #message(): number {
		return this.#options.asked.length + this.#answers.length - 1;
	}

	#turnTo(textId: string): Answer {
		if (this.#answer.messageId !== textId) {
			this.#answer = answerOf(textId);
			this.#answers.push(this.#answer);
		}
		return this.#answer;
	}

	/** A run may call a model several times; what one of them did not say stays unknown only if none said it. */
	#addUsage(usage: Extract<EngineEvent, { type: "usage" }>): void {
		const sum: Usage = { ...this.#usage };
		for (const [name, count] of Object.entries(usage)) {
			if (typeof count !== "number" || count < 0) continue;
			const before = Object.hasOwn(sum, name) ? Math.max(0, sum[name]!) : 0;
			const total = before + Math.round(count);
			if (Number.isSafeInteger(total)) sum[name] = total;
		}
		this.#usage = sum;
	}
}

function settled(call: LiveToolCall, ending: Ending, now: number): StoredToolCall {
	const { status, endedAt, asking: _asking, ...facts } = call;
	if (status !== "started" && endedAt !== undefined) return { ...facts, status, endedAt };
	return { ...facts, status: "failed", summary: unpairedSummary(ending.reason), endedAt: now };
}

const jsonText = (value: unknown): string => JSON.stringify(value) ?? "null";
