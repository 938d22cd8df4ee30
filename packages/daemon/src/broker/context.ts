/** The context of a run: the newest whole turns that fit the budget, then the new messages. Pure. */

import { type ContentPart, isShown } from "@nexus-stream/protocol";
import type { Attachment, EngineMessage, PastToolCall } from "@nexus-stream/protocol/engine";
import type { StoredToolCall, Turn } from "../ledger/turns/port.ts";
import { modelText, partChars } from "./frames/content.ts";

const CHARS_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 4;
/** A model sees a picture, not its bytes; large models charge about this much for a large picture. */
const CHARS_PER_BINARY_FILE = 1600 * CHARS_PER_TOKEN;

const NOTE = {
	aborted: "[This answer was stopped by the user before it was complete.]",
	failed: "[This answer failed before it was complete.]",
} as const;

/** One settled turn as a model reads it. Shared by all contexts that hold it. */
export interface PastTurn {
	/** It continues the turn before it. */
	readonly continues: boolean;
	readonly messages: readonly EngineMessage[];
	/** The inbound events whose text is in the messages. */
	readonly events: readonly string[];
	/** Estimated. */
	readonly tokens: number;
	/** Size in memory. */
	readonly chars: number;
}

/** Whether later runs read this turn. */
export const isInContext = (turn: Turn): boolean => turn.rolledBack !== true;

export function pastTurnOf(turn: Turn): PastTurn {
	const messages = messagesOf(turn);
	const sizes = messages.map(sizeOf);
	return {
		messages,
		events: turn.messages.flatMap(({ role, eventId }) => (role === "user" && eventId !== undefined ? [eventId] : [])),
		continues: turn.continues !== undefined,
		tokens: sizes.reduce((sum, size) => sum + size.tokens, 0),
		chars: sizes.reduce((sum, size) => sum + size.chars, 0),
	};
}

/** The newest turns that fit, oldest first. `past` is newest first. */
export function chosenTurns(
	past: Iterable<PastTurn>,
	fresh: readonly EngineMessage[],
	contextTokensMax: number,
): PastTurn[] {
	let budget = contextTokensMax - tokensOf(fresh);
	const chosen: PastTurn[] = [];
	for (const turn of past) {
		budget -= turn.tokens;
		if (budget < 0) break;
		chosen.push(turn);
	}
	return chosen.reverse();
}

/** `turns` are oldest first. */
export const assembleContext = (turns: readonly PastTurn[], fresh: readonly EngineMessage[]): EngineMessage[] => [
	...turns.flatMap(({ messages }) => messages),
	...fresh,
];

/** A deliberate over-simplification: good enough to stay clear of a model's limit. */
export const tokensOf = (messages: readonly EngineMessage[]): number =>
	messages.reduce((sum, message) => sum + sizeOf(message).tokens, 0);

function sizeOf(message: EngineMessage): { tokens: number; chars: number } {
	const { text, attachments = [], toolCalls = [], reasoning = [] } = message;
	let chars = text.length;
	for (const { text, signature } of reasoning) chars += text.length + signature.length;
	let read = chars;
	for (const call of toolCalls) {
		const asked = call.name.length + JSON.stringify(call.args ?? null).length;
		const answers = call.content ?? [{ type: "text" as const, text: call.result }];
		chars += asked + call.result.length;
		read += asked;
		for (const part of answers) {
			if (call.content) chars += partChars(part);
			read += isReadAsText(part) ? partChars(part) : CHARS_PER_BINARY_FILE;
		}
	}
	for (const file of attachments) {
		chars += file.data.length;
		read += charsRead(file);
	}
	return { tokens: Math.ceil(read / CHARS_PER_TOKEN) + TOKENS_PER_MESSAGE, chars };
}

const isReadAsText = (part: ContentPart): boolean =>
	part.type === "text" || (part.type === "resource" && part.data === undefined);

function charsRead({ contentType, data }: Attachment): number {
	const isText = contentType.startsWith("text/") || contentType.startsWith("application/json");
	return isText ? (data.length * 3) / 4 : CHARS_PER_BINARY_FILE;
}

function messagesOf(turn: Turn): EngineMessage[] {
	// A message that joined the run may be the last, without an answer.
	const last = turn.messages.at(-1)?.role === "assistant" ? turn.messages.length - 1 : -1;
	// A continued answer is not cut: the next turn has the rest.
	const cut = turn.status === "completed" || turn.continuedBy !== undefined ? undefined : turn.status;
	const messages: EngineMessage[] = [];
	turn.messages.forEach((message, index) => {
		if (message.role === "user") {
			messages.push(userMessage(message));
			return;
		}
		// Hidden text is left out; its tool calls stay.
		const isHidden = !isShown(message);
		const { text, moved } = isHidden ? { text: "", moved: 0 } : modelText(message);
		const reasoning = isHidden ? undefined : message.signedReasoning;
		const calls = turn.toolCalls.filter((call) => call.message === index).map((call) => pastCall(call, moved));
		const interrupted = index === last ? cut : undefined;
		if (text !== "" || calls.length > 0 || interrupted)
			messages.push({
				...answered(text, calls, interrupted),
				...(reasoning && { reasoning }),
				...(message.agent !== undefined && { agent: message.agent }),
			});
	});
	// The model must know that this question was asked, even if the run died before any text.
	if (last < 0 && cut) messages.push(answered("", [], cut));
	return messages;
}

export function userMessage(message: { text: string; attachments?: readonly Attachment[] }): EngineMessage {
	const { text, attachments = [] } = message;
	return attachments.length === 0 ? { role: "user", text } : { role: "user", text, attachments };
}

/** Context that is not a user's message, for one run only. */
export const contextMessage = (text: string): EngineMessage => ({ role: "user", text: `[Context]\n${text}` });

function answered(text: string, toolCalls: PastToolCall[], interrupted?: keyof typeof NOTE): EngineMessage {
	const message: EngineMessage = { role: "assistant", text };
	if (interrupted) {
		message.text = text === "" ? NOTE[interrupted] : `${text}\n\n${NOTE[interrupted]}`;
		message.interrupted = interrupted;
	}
	if (toolCalls.length > 0) message.toolCalls = toolCalls;
	return message;
}

function pastCall(call: StoredToolCall, moved: number): PastToolCall {
	const result = call.result === undefined ? (call.summary ?? "") : JSON.parse(call.result);
	return {
		callId: call.callId,
		name: call.name,
		args: call.args === undefined ? {} : JSON.parse(call.args),
		status: call.status,
		result: typeof result === "string" ? result : JSON.stringify(result),
		content: call.content,
		after: call.after === undefined ? undefined : call.after + moved,
	};
}
