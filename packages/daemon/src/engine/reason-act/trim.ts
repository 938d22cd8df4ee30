/** Keeps a long run within the model's window: the oldest tool results give way first, and every call keeps its result. */

import type { Message } from "@earendil-works/pi-ai";

const CHARS_PER_TOKEN = 4;
/** What a picture costs, about. */
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
