/** The engine port: an agent is an async generator. */

import type { ContentPart, Modality, SignedReasoning } from "../protocol/protocol.ts";

/** A file that came with a user's message: text or base64, as its content type says. */
export interface Attachment {
	name: string;
	contentType: string;
	/** Base64. */
	data: string;
}

/** A tool call that an earlier turn made; always paired with how it ended. */
export interface PastToolCall {
	callId: string;
	name: string;
	args: unknown;
	status: "completed" | "failed";
	/** What it answered, as text. */
	result: string;
	/** What it answered in parts, where that is more than text. */
	content?: readonly ContentPart[];
	/** After how many characters of the message's text it was made; left out = after all of it. */
	after?: number;
}

/** One message of the context, oldest first; the last one is the user's new message. */
export interface EngineMessage {
	role: "user" | "assistant";
	text: string;
	attachments?: readonly Attachment[];
	toolCalls?: readonly PastToolCall[];
	/** What the model thought, as far as its provider signed it, in order. An engine uses only signatures that it made itself. */
	reasoning?: readonly SignedReasoning[];
	/** An assistant message that was cut short: stopped by the user, or failed. The text already says so to the model. */
	interrupted?: "aborted" | "failed";
}

/** Who wrote the message that a run answers. */
export interface Sender {
	/** In the platform's words. */
	id: string;
	name?: string;
	channel: string;
	account: string;
}

export interface EngineRequest {
	session: string;
	runId: string;
	/** Who wrote the newest message; left out when nobody in particular did, as with a program that calls the API. */
	sender?: Sender;
	/** What the sender may do, in the words of the access rules; left out when no rules apply. An engine grants nothing beyond it. */
	permissions?: readonly string[];
	/** Names of the tools that this run may use; left out = all that the engine has. An engine does not offer the others to its model. */
	allowedTools?: readonly string[];
	/** Which agent is asked, where the configuration has several. */
	agent?: string;
	messages: readonly EngineMessage[];
	/** The attachments of the newest message. */
	attachments: readonly Attachment[];
	/** How long one tool may take before the engine should fail it. */
	toolTimeoutMs: number;
}

export type ToolStatus = "started" | "progress" | "completed" | "failed";

/** What an agent yields. The order of yields is the order a person should see: that alone defines `align`. */
export type EngineEvent =
	| { type: "text"; delta: string }
	| { type: "reasoning"; delta: string }
	/**
	 * Reasoning of this message that its provider signed, whole: shown to nobody, given back in later turns as `reasoning` of the message.
	 * `after` counts characters of the message's text; left out = those yielded so far. Yield it before the message's tool calls.
	 */
	| { type: "signed_reasoning"; text: string; signature: string; after?: number }
	/** A new assistant message begins. */
	| { type: "message" }
	| {
			type: "tool";
			callId: string;
			name: string;
			status: ToolStatus;
			args?: unknown;
			summary?: string;
			/** What a person is shown; with `content` alone it is the text of that. */
			result?: unknown;
			/** What it answered in parts: a later turn gives these to the model. Frames do not carry them. */
			content?: readonly ContentPart[];
	  }
	/** A card, carousel, image or audio piece; shown after the text yielded so far. */
	| { type: "part"; modality: Modality; contentType: string; payload: string }
	/** Tokens of a model call, by the names they have on the wire; -1 = the model did not say. Several are added up. */
	| { type: "usage"; input: number; output: number; cache_read?: number; cache_write?: number; reasoning?: number }
	| { type: "compaction"; phase: "start" | "end" };

/** One event, or several that came at once: taken in order, as if each had been yielded alone. An empty array is nothing. */
export type EngineYield = EngineEvent | readonly EngineEvent[];

/** Returning ends the run, throwing fails it, `signal` aborts it. */
export interface Engine {
	name: string;
	/** Its answers, or the answer to this message, come in one piece: one chunk per message, and one delivery when it is finished. */
	disableStreaming?: boolean | ((message: { session: string; text: string }) => boolean);
	run(request: EngineRequest, context: { signal: AbortSignal }): AsyncIterable<EngineYield>;
	/** Called once at shutdown. */
	close?(): void | Promise<void>;
}
