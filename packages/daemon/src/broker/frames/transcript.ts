/** The messages and tool calls of one run so far, from which its turn is made. No I/O. */

import { messageIdOf, streamNumberOf, type Usage, type UsageShare } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { StoredMessage, StoredToolCall, Turn } from "../../ledger/turns/port.ts";
import { type Ending, statusOf, UNPAIRED_SUMMARY } from "../ending.ts";
import type { keptOf, LiveToolCall } from "../port.ts";
import { UsageCount } from "../usage.ts";
import { fitContent, storedPart } from "./content.ts";
import type { TextStream } from "./streams.ts";
import { GrowingText } from "./text.ts";

type ToolReport = Omit<Extract<EngineEvent, { type: "tool" }>, "type">;
type Signed = Pick<Extract<EngineEvent, { type: "signed_reasoning" }>, "text" | "signature" | "after">;

/** Limit per message; an engine that streams audio yields many. */
const PARTS_MAX = 200;

/** One message of the run. */
interface TranscriptMessage {
	readonly stream: TextStream;
	/** Position among the run's begins. */
	readonly order: number;
	readonly text: GrowingText;
	readonly reasoning: GrowingText;
	readonly attached: Pick<StoredMessage, "parts" | "signedReasoning">;
	calls: number;
}

const answerOf = (stream: TextStream): TranscriptMessage => ({
	stream,
	order: streamNumberOf(stream.messageId),
	text: new GrowingText(),
	reasoning: new GrowingText(),
	attached: {},
	calls: 0,
});

/** A message that joined the run stands between answers. */
interface JoinedMessage {
	readonly order: number;
	readonly joined: StoredMessage;
}

type TranscriptCall = Omit<LiveToolCall, "message"> & { answer: TranscriptMessage };

export interface TranscriptOptions extends ReturnType<typeof keptOf> {
	runId: string;
	session: string;
	engine: string;
	startedAt: number;
	/** The run that it continues. */
	continues?: string | undefined;
	/** The user's messages that the run answers. */
	userMessages: readonly StoredMessage[];
}

export class Transcript {
	readonly #options: TranscriptOptions;
	/** In order of their begins. */
	readonly #answers: [TranscriptMessage, ...TranscriptMessage[]];
	#joined: readonly JoinedMessage[] = [];
	/** The message that grew last: usually it gets the next delta too. */
	#answer: TranscriptMessage;
	/** In order of starting. */
	readonly #calls: TranscriptCall[] = [];
	readonly #running = new Map<string, TranscriptCall>();
	#firstTextAt: number | undefined;
	#signedChars = 0;
	#contentChars = 0;
	readonly #usage = new UsageCount();

	constructor(options: TranscriptOptions) {
		this.#options = options;
		this.#answer = answerOf({ messageId: messageIdOf(options.runId, 1), agent: undefined, visible: true });
		this.#answers = [this.#answer];
	}

	get usage(): Usage {
		return this.#usage.sum;
	}

	get usageBy(): UsageShare[] {
		return this.#usage.shares;
	}

	get firstTokenMs(): number | undefined {
		return this.#firstTextAt === undefined ? undefined : this.#firstTextAt - this.#options.startedAt;
	}

	/** When the tool that has been running longest was started. */
	get oldestToolAt(): number | undefined {
		// A call that waits for a person is not running.
		let oldest: number | undefined;
		for (const { asking: approval, startedAt } of this.#running.values())
			if (approval?.state !== "pending" && (oldest === undefined || startedAt < oldest)) oldest = startedAt;
		return oldest;
	}

	/** Characters of each assistant message so far, by its id. */
	get lengths(): Record<string, number> {
		return Object.fromEntries(this.#kept.map(({ stream, text }) => [stream.messageId, text.length]));
	}

	/** All visible text so far. */
	get text(): string {
		const shown = this.#kept.filter(({ stream }) => stream.visible);
		return shown.map(({ text }) => text.toString()).join("\n\n");
	}

	get messages(): StoredMessage[] {
		const { userMessages, reasoningCharsMax } = this.#options;
		const answers = this.#ordered.map((one): StoredMessage => {
			if ("joined" in one) return one.joined;
			const { text, reasoning, attached, stream } = one;
			const kept = reasoning.toString().slice(0, reasoningCharsMax).toWellFormed();
			const { messageId, agent, visible } = stream;
			return {
				role: "assistant",
				messageId,
				...attached,
				text: text.toString(),
				agent,
				visible: visible ? undefined : visible,
				reasoning: kept || undefined,
			};
		});
		return [...userMessages, ...answers];
	}

	/** Answers and messages that joined, by their places in the log. */
	get #ordered(): readonly (TranscriptMessage | JoinedMessage)[] {
		if (this.#joined.length === 0) return this.#kept;
		return [...this.#kept, ...this.#joined].sort((one, other) => one.order - other.order);
	}

	/** Leaves out the empty message that the run began with if agents gave the answer. */
	get #kept(): readonly TranscriptMessage[] {
		const [first, ...others] = this.#answers;
		const isEmpty = first.text.length === 0 && first.reasoning.length === 0 && first.calls === 0;
		return isEmpty && others.length > 0 && Object.keys(first.attached).length === 0 ? others : this.#answers;
	}

	get toolCalls(): LiveToolCall[] {
		const ordered = this.#ordered;
		const { length } = this.#options.userMessages;
		return this.#calls.map(({ answer, ...call }) => ({ ...call, message: length + ordered.indexOf(answer) }));
	}

	/** Messages join the run: `place` is the stream that records it in the log. Returns an undo. */
	join(messages: readonly StoredMessage[], place: string): () => void {
		const order = streamNumberOf(place);
		this.#joined = [...this.#joined, ...messages.map((joined) => ({ order, joined }))];
		return () => {
			this.#joined = this.#joined.filter((one) => one.order !== order);
		};
	}

	/** An event that was framed; `stream` is the message it belongs to. */
	take(event: EngineEvent, stream: TextStream, now: number): void {
		if (event.type === "text") this.say(event.delta, stream, now);
		else if (event.type === "reasoning") this.reason(event.delta, stream);
		else if (event.type === "signed_reasoning") this.#sign(event, stream);
		else if (event.type === "tool") this.tool(event, stream, now);
		else if (event.type === "part") this.part(event, stream);
		else if (event.type === "usage") this.#usage.add(event);
	}

	say(delta: string, stream: TextStream, now: number): void {
		if (delta === "") return;
		if (stream.visible) this.#firstTextAt ??= now;
		this.#turnTo(stream).text.push(delta);
	}

	reason(delta: string, stream: TextStream): void {
		const { reasoningCharsMax } = this.#options;
		if (reasoningCharsMax === 0 || delta === "") return;
		const { reasoning } = this.#turnTo(stream);
		// Cut and made well-formed on reading: a character may be split between two deltas.
		if (reasoning.length < reasoningCharsMax) reasoning.push(delta);
	}

	/** Whole or not at all: a provider accepts its signed reasoning only unchanged. */
	#sign({ text, signature, after }: Signed, stream: TextStream): void {
		const chars = text.length + signature.length;
		if (this.#signedChars + chars > this.#options.signedReasoningCharsMax) return;
		this.#signedChars += chars;
		const answer = this.#turnTo(stream);
		const { length } = answer.text;
		answer.attached.signedReasoning ??= [];
		answer.attached.signedReasoning.push({
			text,
			signature,
			after: Math.min(after ?? length, length),
			callsBefore: answer.calls,
		});
	}

	/** Parts beyond the limit stay in the frames only. */
	part(part: { modality: string; contentType: string; payload: string }, stream: TextStream): void {
		const { attached, text } = this.#turnTo(stream);
		attached.parts ??= [];
		if (attached.parts.length < PARTS_MAX) attached.parts.push(storedPart(part, text.length));
	}

	tool(report: ToolReport, stream: TextStream, now: number): void {
		const { callId, status, asking, args, summary, result, content } = report;
		const call = this.#running.get(callId) ?? this.#start(report, stream, now);
		// Its time counts from the approval on.
		if (status === "started" && call.asking) call.startedAt = now;
		if (asking !== undefined) call.asking = asking;
		if (args !== undefined) call.args = jsonText(args);
		if (summary !== undefined) call.summary = summary;
		if (status !== "completed" && status !== "failed") return;
		if (result !== undefined) call.result = jsonText(result);
		if (content !== undefined) {
			const fitted = fitContent(content, this.#options.toolContentCharsMax - this.#contentChars);
			this.#contentChars += fitted.chars;
			call.content = fitted.content;
		}
		call.status = status;
		call.endedAt = now;
		this.#running.delete(callId);
	}

	/** The turn that this becomes. A call without an outcome is paired with a failure. */
	turn(ending: Ending, endedAt: number): Turn {
		const { runId, session, engine, startedAt, continues } = this.#options;
		const turn: Turn = {
			runId,
			session,
			engine,
			startedAt,
			endedAt,
			status: statusOf(ending.reason),
			reason: ending.reason,
			usage: this.usage,
			messages: this.messages,
			toolCalls: this.toolCalls.map((call) => settled(call, ending, endedAt)),
		};
		const { usageBy } = this;
		if (usageBy.length > 0) turn.usageBy = usageBy;
		if (continues !== undefined) turn.continues = continues;
		if (ending.error) turn.error = ending.error;
		if (this.firstTokenMs !== undefined) turn.firstTokenMs = this.firstTokenMs;
		return turn;
	}

	#start({ callId, name }: ToolReport, stream: TextStream, now: number): TranscriptCall {
		const answer = this.#turnTo(stream);
		answer.calls++;
		const { agent } = stream;
		const after = answer.text.length;
		const call: TranscriptCall = { callId, name, status: "started", answer, after, startedAt: now, agent };
		this.#calls.push(call);
		this.#running.set(callId, call);
		return call;
	}

	#turnTo(stream: TextStream): TranscriptMessage {
		if (this.#answer.stream.messageId !== stream.messageId) this.#answer = this.#find(stream) ?? this.#add(stream);
		return this.#answer;
	}

	#find({ messageId }: TextStream): TranscriptMessage | undefined {
		return this.#answers.findLast(({ stream }) => stream.messageId === messageId);
	}

	/** Sorted by their begins, which is the order that readers see. */
	#add(stream: TextStream): TranscriptMessage {
		const answer = answerOf(stream);
		const before = this.#answers.findLastIndex(({ order }) => order < answer.order);
		this.#answers.splice(before + 1, 0, answer);
		return answer;
	}
}

function settled(call: LiveToolCall, ending: Ending, now: number): StoredToolCall {
	const { status, endedAt, asking: _asking, ...facts } = call;
	if (status !== "started" && endedAt !== undefined) return { ...facts, status, endedAt };
	return { ...facts, status: "failed", summary: UNPAIRED_SUMMARY[ending.reason], endedAt: now };
}

const jsonText = (value: unknown): string => JSON.stringify(value) ?? "null";
