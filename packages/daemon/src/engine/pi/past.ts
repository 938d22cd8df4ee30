/** A past assistant message in pi's words: one message of pi's for each time the model was called, in the order in which it all came. */

import type {
	AssistantMessage,
	ImageContent,
	Message,
	TextContent,
	ThinkingContent,
	ToolResultMessage,
} from "@earendil-works/pi-ai";
import type { ContentPart } from "@nexus-stream/protocol";
import type { EngineMessage, PastToolCall } from "@nexus-stream/protocol/engine";
import { type Signer, thinkingOf } from "./signature.ts";

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
		return { type: "toolCall" as const, id: call.id, name: call.name, arguments: jsonObject(call) };
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
export const isImage = (contentType: string | undefined): contentType is string =>
	contentType !== undefined && IMAGE_TYPES.includes(contentType);

function imageOf({ contentType, data }: { contentType?: string; data?: string }): ImageContent | undefined {
	return data !== undefined && isImage(contentType) ? { type: "image", data, mimeType: contentType } : undefined;
}

function named(what: string, { contentType, uri }: { contentType?: string; uri?: string }): TextContent {
	return { type: "text", text: `[${[what, uri, contentType].filter((word) => word !== undefined).join(" ")}]` };
}

type JsonObject = Extract<AssistantMessage["content"][number], { type: "toolCall" }>["arguments"];

function jsonObject({ args }: PastToolCall): JsonObject {
	const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
	return (isObject ? args : args === undefined ? {} : { value: args }) as JsonObject;
}
