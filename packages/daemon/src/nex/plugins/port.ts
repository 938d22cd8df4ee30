/** The interface of plugins. A plugin sees a message before it becomes a run and the finished turn after it, never a token. */

import type { Usage } from "@nexus-stream/protocol";
import type { Disposition } from "../../ledger/inbox/port.ts";
import type { StoredPart, TurnStatus } from "../../ledger/turns/port.ts";

/** Values that plugins share for one message; JSON only. */
export interface HookContext {
	/** The answer is delivered when it is finished. */
	disable_streaming?: boolean;
	[key: string]: unknown;
}

/** A copy of a message for plugins. */
export interface HookRequest {
	event: {
		eventId: string;
		text: string;
		attachments: readonly { name: string; contentType: string; bytes: number }[];
		receivedAt: number;
		/** Several messages that are answered together, oldest first; `text` is the newest one's. */
		batch?: readonly { eventId: string; text: string }[];
	};
	channel: string;
	account: string;
	sender: { id: string; name?: string; owner: boolean };
	chat: { id: string; type: "direct" | "group"; name?: string };
	session: string;
	agent: string;
	/** Changes of it are kept, like `context` of an answer. */
	hooks: { context: HookContext };
	/** From `onPrepare` on. */
	runId?: string;
	disposition?: Disposition;
	/** In `onComplete`. */
	response?: HookResponse;
}

/** A finished run. */
export interface HookResponse {
	/** The whole answer. */
	text: string;
	status: TurnStatus;
	error?: { code: string; message: string };
	toolCalls: readonly HookToolCall[];
	/** Cards, images, audio and the like, in order. */
	parts: readonly StoredPart[];
	usage: Usage;
	latencyMs: number;
	deliveries: readonly DeliveryResult[];
	metrics: StreamingMetrics;
}

export interface HookToolCall {
	callId: string;
	name: string;
	status: "completed" | "failed";
	args?: unknown;
	summary?: string;
	result?: unknown;
}

export interface DeliveryResult {
	id: string;
	channel: string;
	account: string;
	/** The whole answer is on the platform. */
	success: boolean;
	/** Sent as a growing message; false: as finished messages. */
	streamed: boolean;
	message_ids: readonly string[];
	error?: string;
}

export interface StreamingMetrics {
	/** From the start of the run to its first text; absent when there was none. */
	firstTokenMs?: number;
	/** Chunks of the run, all modalities together. */
	chunks: number;
	/** Edits of messages after their creation. */
	edits: number;
	/** Duration of the longest delivery. */
	deliveryMs: number;
}

/** The changes of a plugin; undefined = none. */
export interface HookAnswer {
	/** The message is not answered, for this reason. */
	reject?: string;
	/** Replaces the text of the message. */
	text?: string;
	/** Added to the message for the agent, in this run only. */
	attach?: string;
	/** Merged into `hooks.context`. */
	context?: HookContext;
}

/** `signal` aborts when the plugin's time is over. */
type Hook<Answer> = (request: HookRequest, tools: { signal: AbortSignal }) => Answer;
type ChangingHook =
	| Hook<HookAnswer | undefined>
	| Hook<Promise<HookAnswer | undefined>>
	| Hook<void>
	| Hook<Promise<void>>;

export interface Plugin {
	/** Default: the module's file name. */
	name?: string;
	/** A message was admitted and is not queued yet. */
	onReceive?: ChangingHook;
	/** A run is about to start. */
	onPrepare?: ChangingHook;
	/** The run has settled and its deliveries have ended. */
	onComplete?: Hook<unknown>;
}

export const HOOK_NAMES = ["onReceive", "onPrepare", "onComplete"] as const;
export type HookName = (typeof HOOK_NAMES)[number];

export type NamedPlugin = Plugin & { name: string };
