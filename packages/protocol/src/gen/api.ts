/** The JSON of the HTTP API: what `/v1` takes and answers. Written by `npm run generate` from the schemas in `packages/daemon/src/edge/api`. */

export interface AccountChangesJson {
	added: {
		channel: string;
		account: string;
	}[];
	changed: {
		channel: string;
		account: string;
	}[];
	/** Not listened to any more; answers on their way are given a minute. */
	removed: {
		channel: string;
		account: string;
	}[];
}

export interface AccountHealthJson {
	ok: boolean;
	detail: string;
}

export interface AccountJson {
	channel: string;
	account: string;
	/** It belongs to the channel lab, which has no real readers. */
	lab?: true;
	processes: {
		monitor?: AdapterProcessJson;
		stream?: AdapterProcessJson;
		send?: AdapterProcessJson;
	};
	/** The platform's rate limit holds the whole account. */
	rate: {
		/** Milliseconds since the epoch. */
		blocked_until?: number;
	};
	/** Lines of the adapter that were not understood. */
	garbage_lines: number;
	/** How many deliveries are in which state. */
	deliveries: Record<DeliveryState, number>;
	last_error?: string;
}

export interface AccountListJson {
	/** By the daemon's clock. */
	now: number;
	accounts: AccountJson[];
	/** Channels whose adapter has a `command` and that have no account: nothing starts them. */
	without_account?: string[];
}

export interface AdapterProcessJson {
	/** `unreachable`: it runs, and its platform does not answer. */
	state: "starting" | "running" | "unreachable" | "backing_off" | "open_circuit" | "stopped";
	pid?: number;
	restarts: number;
	/** When it is tried again. */
	until?: number;
	/** Until it has gone well for a while. */
	last_error?: string;
}

export interface AnswerRequest {
	answer: string;
}

export interface ApprovalJson {
	/** Short enough to be typed; one pending question has it at a time. */
	id: string;
	kind: "approval" | "question";
	run_id: string;
	session: string;
	call_id: string;
	tool: string;
	agent?: string;
	/** Whole: what is approved is what is run. */
	args: unknown;
	/** For people: one line, what could deceive a reader is escaped. Of a question, the question. */
	text: string;
	/** Why a person is asked whatever the policy says; one line. */
	because?: string;
	choices?: string[];
	/** The author of the message that the run answers. */
	asked_for?: {
		channel: string;
		account: string;
		sender: string;
		sender_name?: string;
	};
	state: "pending" | "approved" | "denied" | "answered" | "expired" | "withdrawn";
	/** Milliseconds since the epoch. */
	created_at: number;
	/** Milliseconds since the epoch. */
	expires_at: number;
	/** Milliseconds since the epoch. */
	decided_at?: number;
	/** A name for the person who decided, for example `the owner`; `nexus` if no person did. */
	by?: string;
	reason?: string;
	answer?: string;
}

export interface ApprovalListJson {
	approvals: ApprovalJson[];
}

export interface ApprovalRequest {
	decision: "approve" | "deny";
	reason?: string;
	/** Allows the same for the rest of the session. */
	remember?: boolean;
}

export interface AttachmentUpload {
	name: string;
	content_type: string;
	/** The file, base64. */
	data: string;
}

export type DaemonState = "STOPPED" | "STARTING" | "READY" | "DEGRADED" | "STOPPING";

export interface DeliveryAccepted {
	delivery_id: string;
	run_id?: string;
}

export interface DeliveryJson {
	delivery_id: string;
	run_id: string;
	channel: string;
	account: string;
	/** It belongs to the channel lab, which has no real readers. */
	lab?: true;
	target: {
		to: string;
		[field: string]: unknown;
	};
	/** Decided when it begins. */
	mode?: DeliveryMode;
	state: DeliveryState;
	/** Everything before this position of the answer's text is in finished messages. */
	position: number;
	messages: SentMessageJson[];
	error?: string;
	/** Milliseconds since the epoch. */
	created_at: number;
	/** Milliseconds since the epoch. */
	updated_at: number;
}

export interface DeliveryListJson {
	deliveries: DeliveryJson[];
}

export type DeliveryMode = "stream" | "blocks" | "whole";

export type DeliveryRequest = {
	run_id: string;
	channel: string;
	account: string;
	/** The platform's address; more fields are its own. */
	target: {
		to: string;
		[field: string]: unknown;
	};
	/** Sent when it is finished. */
	disable_streaming?: boolean;
	/** Shows tool status while it is written; else as the channel's config says. */
	tools?: boolean;
	/** Shows the reasoning, quoted; else as the channel's config says. */
	reasoning?: boolean;
} | {
	text: string;
	/** Sent again with the same key within 24 hours, it is the same delivery. */
	idempotency_key?: string;
	channel: string;
	account: string;
	/** The platform's address; more fields are its own. */
	target: {
		to: string;
		[field: string]: unknown;
	};
	/** Sent when it is finished. */
	disable_streaming?: boolean;
	/** Shows tool status while it is written; else as the channel's config says. */
	tools?: boolean;
	/** Shows the reasoning, quoted; else as the channel's config says. */
	reasoning?: boolean;
};

export type DeliveryState = "active" | "complete" | "failed" | "unknown" | "stale" | "damaged";

export type DispositionState = "started" | "queued" | "batched" | "injected" | "superseded" | "rejected" | "dropped" | "cancelled" | "handled" | "answered";

export interface ErrorJson {
	error: {
		code: "invalid" | "unauthenticated" | "forbidden" | "not_found" | "method_not_allowed" | "conflict" | "precondition" | "expired" | "too_large" | "busy" | "aborted" | "internal" | "unavailable" | "engine_failed" | "timeout" | "crashed" | "data_loss" | "config";
		message: string;
	};
}

export interface EventJson {
	event_id: string;
	session: string;
	text: string;
	/** Milliseconds since the epoch. */
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
	/** The author's id on the platform. */
	sender?: string;
	sender_name?: string;
}

export interface EventListJson {
	events: EventJson[];
}

export interface GrantJson {
	id: string;
	session: string;
	channel: string;
	account: string;
	sender: string;
	agent?: string;
	tool: string;
	/** Commands that begin so; else exactly the approved arguments. */
	prefix?: string;
	by: string;
	/** Milliseconds since the epoch. */
	created_at: number;
}

export interface GrantListJson {
	grants: GrantJson[];
}

export interface GrantRevokedJson {
	revoked: true;
}

export interface HealthJson {
	status: "ok";
}

export interface LabAccepted {
	lab_id: string;
	run_id: string;
	session: string;
	channels: {
		channel: string;
		delivery_id: string;
	}[];
}

export interface LabAskedJson {
	question_id: string;
}

export interface LabCallJson {
	/** Milliseconds since the epoch. */
	at: number;
	call: string;
	ms?: number;
	/** HTTP status; 0 = no answer. */
	status: number;
	/** How it was made to go wrong. */
	fault?: string;
}

export interface LabChannelJson {
	channel: string;
	/** Its adapter has been started. */
	ready: boolean;
	mode?: DeliveryMode;
	state?: DeliveryState;
	position?: number;
	delivery?: DeliveryJson;
	messages: LabMessageJson[];
	/** A preview below the messages, on platforms that have one. */
	draft?: LabMessageJson;
	typing: boolean;
	calls_total: number;
	calls: LabCallJson[];
	/** Milliseconds since the epoch. */
	rate_limited_until?: number;
}

export type LabFaultKind = "429" | "5xx" | "hang" | "reset_after_accept";

export interface LabFaultRequest {
	channel: string;
	kind: LabFaultKind;
	count?: number;
}

export interface LabFaultSetJson {
	set: true;
}

export interface LabMessageJson {
	id: string;
	text: string;
	/** How the text is to be read: as it is, as markdown, with *marks*, or with the given ranges. */
	style: "plain" | "markdown" | "marks" | "ranges";
	ranges?: RangeJson[];
	/** Names of what is attached. */
	files?: string[];
	/** Labels of its buttons. */
	buttons?: string[];
	/** Milliseconds since the epoch. */
	created_at: number;
	/** Milliseconds since the epoch. */
	updated_at: number;
	/** How often it was seen to change. */
	edits: number;
}

export interface LabPressRequest {
	channel: string;
	/** A message's id in the lab's state. */
	message: string;
	label: string;
}

export interface LabPressedJson {
	pressed: true;
}

export interface LabRequest {
	text: string;
	channels?: string[];
}

export interface LabStateJson {
	/** By the daemon's clock. */
	now: number;
	run_id?: string;
	/** A question waits to be decided, or something of it is on its way. */
	question_open: boolean;
	channels: LabChannelJson[];
}

export interface LogEntryJson {
	id: number;
	run_id?: string;
	/** Milliseconds since the epoch. */
	at: number;
	kind: string;
	agent?: string;
	text: string;
	data?: Record<string, unknown>;
}

export interface McpListJson {
	/** By the daemon's clock. */
	now: number;
	servers: McpServerJson[];
}

export interface McpServerJson {
	name: string;
	transport: "stdio" | "http";
	/** `stopped`: the first run that may use its tools starts it. */
	state: "starting" | "running" | "backing_off" | "open_circuit" | "stopped";
	pid?: number;
	restarts: number;
	/** When it is tried again. */
	until?: number;
	/** Until it has gone well for a while. */
	last_error?: string;
	/** As of its last start or list. */
	tools: {
		/** As a model calls it. */
		name: string;
		/** As the server calls it. */
		tool: string;
		description: string;
		/** Changes with what the server says about it; voids remembered approvals. */
		revision: string;
	}[];
	/** Tools that are not offered. */
	refused: {
		tool: string;
		reason: string;
	}[];
}

export interface MessageAccepted {
	event_id: string;
	disposition: "started" | "queued" | "batched" | "injected" | "superseded" | "cancelled";
	/** Present when the run has started. */
	run_id?: string;
}

export interface MessageJson {
	role: "user" | "assistant";
	text: string;
	/** The platform that the message came from; absent for messages of the owner. */
	channel?: string;
	account?: string;
	/** The author's id on the platform. */
	sender?: string;
	sender_name?: string;
	/** The stream that carried it. */
	message_id?: string;
	event_id?: string;
	/** Which agent said it, in a run of several. */
	agent?: string;
	/** Hidden words: shown only to a person who inspects the run. */
	visible?: false;
	attachments?: {
		name: string;
		content_type: string;
		bytes: number;
	}[];
	/** Cards, pictures, sound … of an assistant message, in order. */
	parts?: {
		modality: string;
		content_type: string;
		description: string;
		bytes: number;
		/** After how many characters of the text it stands. */
		after: number;
		/** Text and JSON that are not long; the rest is in the frames. */
		payload?: string;
	}[];
	/** Only where `broker.reasoningCharsMax` keeps it. */
	reasoning?: string;
}

export interface MessageRequest {
	text: string;
	/** At most `broker.idempotencyKeyCharsMax` characters. Sent again with the same content, the message is the same one; with another content it is refused with 409, which names the earlier event. */
	idempotency_key?: string;
	attachments?: AttachmentUpload[];
	/** The answer comes in one piece: one chunk per message. */
	disable_streaming?: boolean;
}

export interface PairingJson {
	code: string;
	channel: string;
	account: string;
	sender: string;
	sender_name?: string;
	/** Milliseconds since the epoch. */
	requested_at: number;
	/** Milliseconds since the epoch. */
	expires_at: number;
	/** Milliseconds since the epoch. */
	approved_at?: number;
}

export interface PairingListJson {
	pairings: PairingJson[];
}

export interface PairingRemovedJson {
	removed: true;
}

export interface PhaseJson {
	name: string;
	/** Milliseconds since the epoch. */
	since: number;
	/** The phase before. */
	from?: string;
	because?: string;
	/** Turns that settled in it. */
	turns: number;
	/** Times that an agent completed its work in it. */
	completions: number;
}

export interface PhaseRequest {
	name: string;
	because?: string;
}

export interface QueuedJson {
	event_id: string;
	text: string;
	/** Milliseconds since the epoch. */
	received_at: number;
	channel?: string;
	account?: string;
	/** The author's id on the platform. */
	sender?: string;
	sender_name?: string;
}

export interface RangeJson {
	type: string;
	offset: number;
	length: number;
	url?: string;
}

export interface ReadinessJson {
	ready: boolean;
	state: DaemonState;
	detail?: string;
}

export interface RunContinuedJson {
	run_id: string;
	continues: string;
}

export interface RunJson {
	run_id: string;
	session: string;
	engine: string;
	status: "running" | "stopping" | "completed" | "aborted" | "failed";
	reason?: "completed" | "aborted" | "error" | "timeout" | "crashed";
	error?: {
		code: string;
		message: string;
	};
	/** Milliseconds since the epoch. */
	started_at: number;
	/** Milliseconds since the epoch. */
	ended_at?: number;
	first_token_ms?: number;
	/** Token counts; -1 = the model did not say. */
	usage?: {
		input: number;
		output: number;
		[field: string]: number;
	};
	/** How it divides among agents and models, where that is known. */
	usage_by?: {
		agent?: string;
		model?: string;
		usage: {
			input: number;
			output: number;
			[field: string]: number;
		};
	}[];
	compacting?: boolean;
	/** It was interrupted, and the session started over without it: no later run has it in its history. */
	rolled_back?: true;
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
	/** The way of the message through the pipeline, once the run has settled. */
	trace?: TraceJson;
	/** Whether the frames can still be streamed and replayed. */
	frames_available: boolean;
}

export interface RunListJson {
	runs: RunJson[];
}

export interface RunRetriedJson {
	run_id: string;
	retries: string;
}

export interface RunStatusJson {
	run_id: string;
	status: "running" | "stopping" | "completed" | "aborted" | "failed";
}

export interface SentMessageJson {
	ordinal: number;
	message_id?: string;
	from: number;
	to?: number;
	/** An open message shows the answer's text up to here. */
	shown?: number;
	state: "intended" | "open" | "sent" | "unknown" | "failed";
	/** Why the platform did not bring it to its reader. */
	error?: string;
}

export interface SessionJson {
	session: string;
	/** Milliseconds since the epoch. */
	created_at: number;
	/** Milliseconds since the epoch. */
	updated_at: number;
	turns: number;
	/** The beginning of the first message that was answered; empty until then. */
	title: string;
	live_run_id?: string;
	/** The platform of a session that a person other than the owner began. */
	channel?: string;
	account?: string;
	/** The id, on the platform, of the person who began the session. */
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

export interface SessionLogJson {
	/** Oldest first. */
	entries: LogEntryJson[];
}

export interface SessionPhaseJson {
	session: string;
	phase: PhaseJson | null;
	/** The names that the engine knows. */
	known?: string[];
}

export interface SessionSettingsJson {
	session: string;
	/** Everything in the session's history may act with the rights of the sender of a run. Holds for its next runs. */
	trust_history: boolean;
}

export interface SessionSettingsRequest {
	/** Everything in the session's history may act with the rights of the sender of a run. Holds for its next runs. */
	trust_history: boolean;
}

export interface SessionTurnsJson {
	/** Oldest first. */
	turns: RunJson[];
	live: RunJson | null;
	queued: QueuedJson[];
	/** Subscribe to the session stream after it: nothing is missed, nothing repeated. */
	stream_offset: number;
}

export interface SignInCodeJson {
	code: string;
	url: string;
}

export type SignInRequest = {
	code: string;
} | {
	token: string;
};

export interface SignedInJson {
	signed_in: true;
}

export interface SignedOutJson {
	signed_out: true;
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
	/** Index into `messages` of the message that made the call. */
	message: number;
	/** Milliseconds since the epoch. */
	started_at: number;
	/** Milliseconds since the epoch. */
	ended_at?: number;
}

export interface TraceJson {
	channel: string;
	account: string;
	sender: string;
	stages: {
		stage: "receive" | "acl" | "hooks" | "queue" | "prepare" | "execute" | "deliver" | "complete";
		/** Milliseconds since the epoch. */
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

export type WebSocketClientMessageJson = {
	type: "subscribe";
	id: string;
	run: string;
	after?: number;
} | {
	type: "subscribe";
	id: string;
	/** 1 to 128 letters, digits and . _ : @ + - beginning with a letter or digit. */
	session: string;
	after?: "end" | number;
} | {
	type: "unsubscribe";
	id: string;
};
