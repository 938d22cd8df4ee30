/** The JSON of the HTTP API, once: what `/v1` takes and answers. The edge's schemas, the client, the page and the CLI all use these types. */

import type { ErrorCode } from "../error.ts";
import type { EndReason, Usage, UsageShare } from "../frames/frame.ts";

/** The outcome of a message. */
export type DispositionState =
	| "started"
	| "queued"
	| "batched"
	| "injected"
	| "superseded"
	| "rejected"
	| "dropped"
	| "cancelled"
	| "handled"
	| "answered";

export interface ErrorJson {
	error: { code: ErrorCode; message: string };
}

export interface AttachmentUpload {
	name: string;
	content_type: string;
	/** The file, base64. */
	data: string;
}

export interface MessageRequest {
	text: string;
	/** Sent again with the same content, the message is the same one. */
	idempotency_key?: string;
	attachments?: AttachmentUpload[];
	/** The answer comes in one piece: one chunk per message. */
	disable_streaming?: boolean;
}

export interface MessageAccepted {
	event_id: string;
	disposition: Exclude<DispositionState, "rejected" | "dropped" | "handled" | "answered">;
	/** Present when the run has started. */
	run_id?: string;
}

/** An inbound message and its outcome. */
export interface EventJson {
	event_id: string;
	session: string;
	text: string;
	received_at: number;
	disposition: DispositionState;
	run_id?: string;
	/** Why it was rejected or dropped, which command it was, or what it decided. */
	because?: string;
	/** The event that took its place. */
	superseded_by?: string;
	/** A synthetic event: the original events it stands for. */
	batch?: string[];
	channel?: string;
	account?: string;
	/** The sender's name as the platform gives it. */
	sender?: string;
	sender_name?: string;
}

export interface EventListJson {
	events: EventJson[];
}

export interface AttachmentJson {
	name: string;
	content_type: string;
	bytes: number;
}

/** A card, picture or sound of an assistant message. */
export interface PartJson {
	modality: string;
	content_type: string;
	description: string;
	bytes: number;
	/** After how many characters of the text it stands. */
	after: number;
	/** Text and JSON that are not long; the rest is in the frames. */
	payload?: string;
}

export interface MessageJson {
	role: "user" | "assistant";
	text: string;
	/** For messages that the owner did not write: the channel, and the sender's name as the platform gives it. */
	channel?: string;
	account?: string;
	sender?: string;
	sender_name?: string;
	/** The stream that carried it. */
	message_id?: string;
	event_id?: string;
	/** Which agent said it, in a run of several. */
	agent?: string;
	/** Hidden text: shown in the inspector only. */
	visible?: false;
	attachments?: AttachmentJson[];
	parts?: PartJson[];
	/** Only where `broker.reasoningCharsMax` keeps it. */
	reasoning?: string;
}

export interface ToolCallJson {
	call_id: string;
	name: string;
	/** Which agent made it, in a run of several. */
	agent?: string;
	args?: unknown;
	/** `started` while it runs. */
	status: "started" | "completed" | "failed";
	summary?: string;
	result?: unknown;
	/** Index into the run's messages of the message that made the call. */
	message: number;
	started_at: number;
	ended_at?: number;
}

/** The way of a message through the pipeline. */
export interface TraceJson {
	channel: string;
	account: string;
	sender: string;
	stages: {
		stage: "receive" | "acl" | "hooks" | "queue" | "prepare" | "execute" | "deliver" | "complete";
		at: number;
		ms: number;
	}[];
	/** Calls of plugins. */
	hooks: {
		plugin: string;
		hook: "onReceive" | "onPrepare" | "onComplete";
		ms: number;
		outcome: "ok" | "changed" | "rejected" | "failed" | "timeout";
		detail?: string;
	}[];
	/** Ids of the deliveries of the answer. */
	deliveries: string[];
}

export interface RunJson {
	run_id: string;
	session: string;
	engine: string;
	status: "running" | "stopping" | "completed" | "aborted" | "failed";
	reason?: EndReason;
	error?: { code: string; message: string };
	started_at: number;
	ended_at?: number;
	first_token_ms?: number;
	/** Token counts; -1 = the model did not say. */
	usage?: Usage;
	/** It was interrupted, and the session started over without it. */
	rolled_back?: true;
	/** How it divides among agents and models, where that is known. */
	usage_by?: UsageShare[];
	compacting?: boolean;
	messages: MessageJson[];
	tool_calls: ToolCallJson[];
	/** The run that was cut off and that this one continues. */
	continues?: string;
	/** The run that continues this one. */
	continued_by?: string;
	/** It was cut off, and `continue` would go on with it. */
	can_continue?: boolean;
	/** It was cut off, and `retry` would answer its messages from the start. */
	can_retry?: boolean;
	/** Present once the run has settled. */
	trace?: TraceJson;
	/** Whether the frames can still be streamed and replayed. */
	frames_available: boolean;
}

export interface RunListJson {
	runs: RunJson[];
}

export type RunStatusJson = Pick<RunJson, "run_id" | "status">;

export interface RunContinuedJson {
	/** The new run. */
	run_id: string;
	continues: string;
}

export interface RunRetriedJson {
	/** The new run. */
	run_id: string;
	retries: string;
}

export interface PhaseRequest {
	name: string;
	because?: string;
}

/** The phase that a session is in. */
export interface PhaseJson {
	name: string;
	since: number;
	/** The phase before, and why it was left. */
	from?: string;
	because?: string;
	turns: number;
	completions: number;
}

export interface SessionPhaseJson {
	session: string;
	phase: PhaseJson | null;
	/** The names that the engine knows. */
	known?: string[];
}

/** The owner's settings for a session. */
export interface SessionSettingsJson {
	session: string;
	/** Everything in its history may act with the rights of the sender of a run. */
	trust_history: boolean;
}

export interface SessionSettingsRequest {
	trust_history: boolean;
}

/** An entry of the execution log. */
export interface LogEntryJson {
	id: number;
	run_id?: string;
	at: number;
	/** tool, routing, phase, attempt, reminder, completion, reasoning, model or note. */
	kind: string;
	agent?: string;
	text: string;
	data?: Readonly<Record<string, unknown>>;
}

export interface SessionLogJson {
	/** Oldest first. */
	entries: LogEntryJson[];
}

export interface SessionJson {
	session: string;
	created_at: number;
	updated_at: number;
	turns: number;
	/** The beginning of the first message that was answered; empty until then. */
	title: string;
	live_run_id?: string;
	/** For a session that another person began: the account, and that person. */
	channel?: string;
	account?: string;
	sender?: string;
	sender_name?: string;
	/** Several people write in it. */
	group?: true;
	chat_name?: string;
}

export interface SessionListJson {
	sessions: SessionJson[];
	/** The name of what answers a message that is sent now. */
	engine?: string;
	/** No model answers, but a script. */
	scripted?: true;
}

export type QueuedJson = Pick<
	EventJson,
	"event_id" | "text" | "received_at" | "channel" | "account" | "sender" | "sender_name"
>;

export interface TurnsJson {
	/** Oldest first. */
	turns: RunJson[];
	live: RunJson | null;
	queued: QueuedJson[];
	/** Follow the session after it: nothing is missed, nothing repeated. */
	stream_offset: number;
}

export type SignInRequest = { code: string } | { token: string };

export interface SignedInJson {
	signed_in: true;
}

export interface SignedOutJson {
	signed_out: true;
}

export interface SignInCodeJson {
	code: string;
	url: string;
}

export interface HealthJson {
	status: "ok";
}

export type DaemonState = "STOPPED" | "STARTING" | "READY" | "DEGRADED" | "STOPPING";

export interface ReadinessJson {
	ready: boolean;
	state: DaemonState;
	detail?: string;
}
