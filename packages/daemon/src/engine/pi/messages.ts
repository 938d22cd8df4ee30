/** The context of a run in pi's words: past turns as history, the newest message as the prompt. */

import type {
	AssistantMessage,
	ImageContent,
	Message,
	TextContent,
	ThinkingContent,
	ToolResultMessage,
	UserMessage,
} from "@earendil-works/pi-ai";
import { type ContentPart, NexusError } from "@nexus-stream/protocol";
import type { Attachment, EngineMessage, EngineRequest, PastToolCall } from "@nexus-stream/protocol/engine";
import { type Signer, thinkingOf } from "./signature.ts";

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

/** The history with the prompt behind it. */
export function toPiMessages(...given: Parameters<typeof toPiContext>): Message[] {
	const { history, prompt } = toPiContext(...given);
	return [...history, prompt];
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

/** Past messages come from "elsewhere", so pi-ai makes no provider-specific assumptions about their ids; but for what the model signed itself. */
const ELSEWHERE = { api: "nexus", provider: "nexus", model: "history" };

const NO_USAGE: AssistantMessage["usage"] = {
	input: 0,
	output: 0,
	cacheRead: 0,
	cacheWrite: 0,
	totalTokens: 0,
	cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

export interface PastOptions {
	timestamp: number;
	/** Calls of earlier messages: ids are counted through the whole context. */
	callsBefore: number;
	/** The model that gets its own reasoning back; without it, none does. */
	signer?: Signer | undefined;
}

type NamedCall = PastToolCall & { id: string };
type Thought = { after: number; callsBefore: number; thinking: ThinkingContent };

/** The text and the tool calls of one model call. */
interface ModelTurn {
	said: (TextContent | ThinkingContent)[];
	calls: NamedCall[];
}

export function assistantMessages(message: EngineMessage, options: PastOptions): Message[] {
	return stepsOf(message, options).flatMap((step) => [
		assistant(step, options),
		...step.calls.map((call) => toolResult(call, options.timestamp)),
	]);
}

/** A step ends with its calls: what comes after them is the next one's. Calls that follow each other without a word are one step. */
function stepsOf({ text, toolCalls = [], reasoning = [] }: EngineMessage, options: PastOptions): ModelTurn[] {
	const { signer, callsBefore } = options;
	const thoughts = reasoning.flatMap(({ after, callsBefore, ...signed }): Thought[] => {
		const thinking = signer && thinkingOf({ after, callsBefore, ...signed }, signer);
		return thinking === undefined ? [] : [{ after, callsBefore, thinking }];
	});
	const steps: ModelTurn[] = [];
	let step: ModelTurn = { said: [], calls: [] };
	let at = 0;
	/** Takes up what was said until `end`, and what was thought before call number `call`. */
	const advance = (end: number, call: number) => {
		const later = thoughts.findIndex((thought) => thought.callsBefore > call);
		const due = thoughts.splice(0, later < 0 ? thoughts.length : later);
		if (step.calls.length > 0 && (due.length > 0 || end > at)) {
			steps.push(step);
			step = { said: [], calls: [] };
		}
		for (const { after, thinking } of due) {
			say(Math.min(after, end));
			step.said.push(thinking);
		}
		say(end);
	};
	const say = (end: number) => {
		if (end <= at) return;
		step.said.push({ type: "text", text: text.slice(at, end) });
		at = end;
	};
	for (const [index, call] of toolCalls.entries()) {
		advance(Math.min(call.after ?? text.length, text.length), index);
		step.calls.push({ ...call, id: `past_${callsBefore + index + 1}` });
	}
	advance(text.length, toolCalls.length);
	if (step.said.length > 0 || step.calls.length > 0) steps.push(step);
	return steps;
}

function assistant({ said, calls }: ModelTurn, { signer, timestamp }: PastOptions): AssistantMessage {
	const isSigned = said.some(({ type }) => type === "thinking");
	const { api, provider, model } = isSigned && signer ? signer : ELSEWHERE;
	const asked = calls.map((call) => {
		return { type: "toolCall" as const, id: call.id, name: call.name, arguments: jsonObject(call.args) };
	});
	return {
		role: "assistant",
		api,
		provider,
		model,
		content: [...said, ...asked],
		usage: NO_USAGE,
		// pi-ai drops messages that ended in an error; an interrupted one says so in its own text and stays.
		stopReason: calls.length > 0 ? "toolUse" : "stop",
		timestamp,
	};
}

/** A finished tool call. */
export interface ToolResultFacts {
	id: string;
	name: string;
	content?: readonly ContentPart[] | undefined;
	/** Used when the content has nothing that pi can show. */
	result?: string | undefined;
	status: string;
}

export function toolResult(call: ToolResultFacts, timestamp: number): ToolResultMessage {
	const content = call.content?.flatMap(toPiContent) ?? [];
	return {
		role: "toolResult",
		toolCallId: call.id,
		toolName: call.name,
		content: content.length > 0 ? content : [{ type: "text", text: call.result || "(no output)" }],
		isError: call.status === "failed",
		timestamp,
	};
}

/** pi knows text and images: a resource is one of them, or is named. */
function toPiContent(part: ContentPart): (TextContent | ImageContent)[] {
	if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
	if (part.type === "image") return [imageOf(part) ?? named("image", part)];
	if (part.text !== undefined) return [{ type: "text", text: `${part.uri}:\n${part.text}` }];
	const image = imageOf(part);
	return image === undefined ? [named("resource", part)] : [{ type: "text", text: `${part.uri}:` }, image];
}

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Whether models can look at it. */
const isImage = (contentType: string | undefined): contentType is string =>
	contentType !== undefined && IMAGE_TYPES.includes(contentType);

function imageOf({ contentType, data }: { contentType?: string; data?: string }): ImageContent | undefined {
	return data !== undefined && isImage(contentType) ? { type: "image", data, mimeType: contentType } : undefined;
}

function named(what: string, { contentType, uri }: { contentType?: string; uri?: string }): TextContent {
	return { type: "text", text: `[${[what, uri, contentType].filter((word) => word !== undefined).join(" ")}]` };
}

type JsonObject = Extract<AssistantMessage["content"][number], { type: "toolCall" }>["arguments"];

/** Arguments as providers want them. */
export function jsonObject(args: unknown): JsonObject {
	const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
	return (isObject ? args : args === undefined ? {} : { value: args }) as JsonObject;
}
