/** The context of a run in pi's words: past turns as history, the newest message as the prompt. */

import type { ImageContent, Message, UserMessage } from "@earendil-works/pi-ai";
import { NexusError } from "@nexus-stream/protocol";
import type { Attachment, EngineMessage, EngineRequest } from "@nexus-stream/protocol/engine";
import { assistantMessages, isImage } from "./past.ts";
import type { Signer } from "./signature.ts";

export interface PiContext {
	history: Message[];
	prompt: UserMessage;
}

/** A text attachment's share of the prompt. */
const ATTACHMENT_TEXT_BYTES_MAX = 256 * 1024;

/** `signer` gets its own reasoning back. */
export function toPiContext(request: EngineRequest, timestamp: number, signer?: Signer): PiContext {
	const newest = request.messages.at(-1);
	if (newest === undefined || newest.role !== "user") {
		throw new NexusError("invalid", "the last message of a request must be the user's");
	}
	let callsBefore = 0;
	const history = request.messages.slice(0, -1).flatMap((message) => {
		const messages =
			message.role === "user"
				? [userMessage(message, timestamp)]
				: assistantMessages(message, { timestamp, callsBefore, signer });
		callsBefore += message.toolCalls?.length ?? 0;
		return messages;
	});
	const attachments = newest.attachments?.length ? newest.attachments : request.attachments;
	return { history, prompt: userMessage({ ...newest, attachments }, timestamp) };
}

/** Messages for pi's next model call; pi asks only before one. */
export async function joiningTurn(
	take: () => Promise<readonly EngineMessage[]>,
): Promise<{ messages: UserMessage[] } | undefined> {
	const taken = await take();
	return taken.length === 0 ? undefined : { messages: taken.map((message) => userMessage(message, Date.now())) };
}

function userMessage({ text, attachments = [] }: EngineMessage, timestamp: number): UserMessage {
	const images = attachments
		.filter(({ contentType }) => isImage(contentType))
		.map((image): ImageContent => {
			return { type: "image", data: image.data, mimeType: image.contentType };
		});
	const parts = [text, ...attachments.map(attachmentText)].filter((part) => part !== "");
	// Providers refuse a message with nothing in it.
	const words = parts.join("\n\n") || "(no text)";
	// Some compatible servers take plain text only.
	const content = images.length === 0 ? words : [{ type: "text" as const, text: words }, ...images];
	return { role: "user", content, timestamp };
}

const TEXT_TYPES = /^text\/|^application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)\b|\+(?:json|xml)\b/;

/** The note about an attachment that accompanies its picture. */
function attachmentText(attachment: Attachment): string {
	const { name, contentType } = attachment;
	const bytes = Buffer.from(attachment.data, "base64");
	if (isImage(attachment.contentType)) return `[attached image: ${name}]`;
	const text = TEXT_TYPES.test(contentType) ? decoded(bytes.subarray(0, ATTACHMENT_TEXT_BYTES_MAX)) : undefined;
	if (text === undefined)
		return `[attached file, not readable as text: ${name}, ${contentType}, ${bytes.length} bytes]`;
	const cut = bytes.length > ATTACHMENT_TEXT_BYTES_MAX;
	const note = cut ? `, the first ${ATTACHMENT_TEXT_BYTES_MAX} of ${bytes.length} bytes` : "";
	const fence = fenceFor(text);
	return `Attached file ${name} (${contentType}${note}):\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

/** Decodes as a stream: drops a character cut by the size limit; any other invalid UTF-8 means it is not text. */
function decoded(bytes: Uint8Array): string | undefined {
	try {
		return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
	} catch {
		// Not UTF-8: the caller says so to the model.
		return undefined;
	}
}

/** Longer than any run of backticks inside, so the file cannot close its own fence. */
function fenceFor(text: string): string {
	let longest = 2;
	for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
	return "`".repeat(longest + 1);
}
