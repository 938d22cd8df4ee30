/** The prompt of an agent: its instructions, the phase, how it has to end, and the messages it reads within the model's context. */

import type { Message, UserMessage } from "@earendil-works/pi-ai";
import type { EngineMessage, EngineRequest } from "@nexus-stream/protocol/engine";
import { type Signer, toPiContext } from "../pi/pi.ts";
import type { AgentNote, PhaseChange } from "./checkpoint.ts";
import { TERMINAL } from "./termination.ts";

export interface PromptFacts {
	prompt: string;
	phase: string;
	/** Must end with a terminal tool. */
	enforced: boolean;
	orchestrator: boolean;
	/** The last change of phase. */
	transition?: PhaseChange | undefined;
	/** How long a change of phase counts as recent. */
	recentTransitionMs: number;
	now: number;
}

export function systemPrompt(facts: PromptFacts): string {
	const { prompt, phase, enforced, orchestrator, transition, recentTransitionMs, now } = facts;
	const parts = [prompt];
	if (transition && now - transition.at < recentTransitionMs) {
		const how = transition.from === phase ? `been set to ${phase}` : `changed from ${transition.from} to ${phase}`;
		parts.push(`The phase has just ${how} because: ${transition.because}`);
	}
	if (enforced && !orchestrator)
		parts.push(`The phase is ${phase}. When your work is done, and only then, call the tool \`${TERMINAL.complete}\`.`);
	if (orchestrator)
		parts.push(
			`The phase is ${phase}. You decide who works next: end with the tool \`${TERMINAL.route}\` or \`${TERMINAL.end}\`.`,
		);
	return parts.filter((part) => part !== "").join("\n\n");
}

/** The session's turns, with the newest message last. */
export function sessionFor(agent: string, request: EngineRequest, now: number, signer: Signer | undefined): Message[] {
	const messages = request.messages.map((message) => (isForeign(message, agent) ? quoted(message) : message));
	const { history, prompt } = toPiContext({ ...request, messages }, now, signer);
	return [...history, prompt];
}

/** A message without a name is from a run with a single agent. */
const isForeign = ({ role, agent }: EngineMessage, reader: string): boolean =>
	role === "assistant" && agent !== undefined && agent !== reader;

/** Without its tools and reasoning: a model must not take another agent's calls for its own. */
const quoted = ({ agent, text }: EngineMessage): EngineMessage => ({
	role: "user",
	text: `[${agent}] ${text || "(no text)"}`,
});

/** Hand-over notes of the other agents since the agent last read; its own are in its own messages. */
export const notesFor = (agent: string, notes: readonly AgentNote[], now: number): UserMessage[] =>
	notes.filter((note) => note.agent !== agent).map((note) => userWords(`[${note.agent}] ${note.text}`, now));

export const userWords = (content: string, timestamp: number): UserMessage => ({ role: "user", content, timestamp });

const CHARS_PER_TOKEN = 4;
/** Approximate cost of a picture. */
const IMAGE_CHARS = 4800;
/** A result this short is not worth replacing. */
const RESULT_CHARS_MIN = 200;

/** The same array when nothing has to give way. */
export function trimmed(messages: readonly Message[], tokensMax: number): readonly Message[] {
	let chars = messages.reduce((sum, message) => sum + charsOf(message), 0);
	const charsMax = tokensMax * CHARS_PER_TOKEN;
	if (chars <= charsMax) return messages;
	const kept = [...messages];
	let changed = false;
	for (const [index, message] of messages.entries()) {
		if (chars <= charsMax) break;
		const size = charsOf(message);
		if (message.role !== "toolResult" || size <= RESULT_CHARS_MIN) continue;
		const text = `[this result of ${size} characters was removed to make room; call ${message.toolName} again if you need it]`;
		kept[index] = { ...message, content: [{ type: "text", text }] };
		chars += text.length - size;
		changed = true;
	}
	return changed ? kept : messages;
}

function charsOf(message: Message): number {
	if (typeof message.content === "string") return message.content.length;
	let chars = 0;
	for (const part of message.content) {
		if (part.type === "text") chars += part.text.length;
		else if (part.type === "thinking") chars += part.thinking.length;
		else if (part.type === "toolCall") chars += part.name.length + JSON.stringify(part.arguments).length;
		else chars += IMAGE_CHARS;
	}
	return chars;
}
