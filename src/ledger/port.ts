/** The Ledger: settled truth. Sessions, turns, messages, tool calls, usage and every inbound event with what became of it. */

import type { ContentPart, EndReason, SignedReasoning, Usage } from "../protocol/protocol.ts";

export type TurnStatus = "completed" | "aborted" | "failed";

export interface StoredAttachment {
	name: string;
	contentType: string;
	data: string;
}

export interface StoredMessage {
	role: "user" | "assistant";
	/** The stream that carried it, for an assistant message. */
	messageId?: string;
	text: string;
	attachments?: StoredAttachment[];
	/** A user's message: the inbound event it came with. */
	eventId?: string;
	/** Cards, pictures, sound … of an assistant message, in order. */
	parts?: StoredPart[];
	/** What was thought before and between the text; only where it is to be kept. */
	reasoning?: string;
	/** What of it the model gets back, signed by its provider. */
	signedReasoning?: SignedReasoning[];
}

/** What an assistant message showed beside its text. */
export interface StoredPart {
	modality: string;
	contentType: string;
	/** For whoever cannot see it: a card's title, what kind of file it is. */
	description: string;
	bytes: number;
	/** After how many characters of the message's text it stands. */
	after: number;
	/** Text and JSON that are not long; the rest is in the run's frames only. */
	payload?: string;
}

export interface StoredToolCall {
	callId: string;
	name: string;
	/** JSON text. */
	args?: string;
	status: "completed" | "failed";
	summary?: string;
	/** JSON text. */
	result?: string;
	/** What it answered in parts, where that is more than text. */
	content?: ContentPart[];
	/** After how many characters of the message's text it was made. */
	after?: number;
	/** Index into the turn's messages of the assistant message that made the call. */
	message: number;
	startedAt: number;
	endedAt: number;
}

/** One settled run (same id). */
export interface Turn {
	runId: string;
	session: string;
	engine: string;
	status: TurnStatus;
	reason: EndReason;
	error?: { code: string; message: string };
	startedAt: number;
	endedAt: number;
	/** From start to the first text; undefined when there was none. */
	firstTokenMs?: number;
	usage: Usage;
	messages: StoredMessage[];
	toolCalls: StoredToolCall[];
	/** How the message came to be a run and the answer was delivered; absent for a run that came by another way. */
	trace?: Trace;
}

/** The way of a message through the pipeline, for a person who asks why it took so long. */
export interface Trace {
	channel: string;
	account: string;
	/** Who wrote, in the platform's words. */
	sender: string;
	/** In order; times are milliseconds, `at` since the epoch. */
	stages: StageTiming[];
	/** Calls of plugins, in order. */
	hooks: HookCall[];
	/** Ids of the deliveries that the answer was owed to. */
	deliveries: string[];
}

export interface StageTiming {
	stage: "receive" | "acl" | "hooks" | "queue" | "prepare" | "execute" | "deliver" | "complete";
	at: number;
	ms: number;
}

export interface HookCall {
	plugin: string;
	hook: "onReceive" | "onPrepare" | "onComplete";
	ms: number;
	outcome: "ok" | "changed" | "rejected" | "failed" | "timeout";
	detail?: string;
}

/** What became of an inbound message (I10). */
export type Disposition =
	| { state: "started"; runId: string }
	| { state: "queued" }
	/** It is one of several that a run answers together. */
	| { state: "batched"; runId: string }
	/** A newer event took its place: its run was stopped for it, or it was summarised into it. */
	| { state: "superseded"; by: string; runId?: string }
	| { state: "rejected"; because: string }
	/** It had been accepted, and had to make room. */
	| { state: "dropped"; because: string };

/** Where an inbound message came from. */
export interface Origin {
	channel: string;
	account: string;
	/** The platform's id of the message: the same message redelivered has the same. */
	sourceId?: string;
	/** Who wrote, in the platform's words. */
	sender: string;
	senderName?: string;
}

/** How a session takes messages while it is busy. */
export interface QueueSettings {
	/**
	 * `followup`: one after another. `interrupt`: stop the run, then answer everything that waits together. `collect`: wait until nothing
	 * more comes, then answer together. `reject`: refuse.
	 */
	mode: "interrupt" | "followup" | "collect" | "reject";
	/** `collect`: how long nothing more has to come. */
	collectMs: number;
	/** How many may wait. */
	messagesMax: number;
	/** What gives way when one more comes. */
	atCap: "drop_oldest" | "drop_newest" | "summarise";
}

export interface InboundEvent {
	eventId: string;
	session: string;
	text: string;
	attachments: StoredAttachment[];
	idempotencyKey?: string;
	receivedAt: number;
	disposition: Disposition;
	origin?: Origin;
	/** How it is to wait, should it have to. */
	queue?: QueueSettings;
	/** A synthetic event: the original events it stands for, oldest first. */
	batch?: string[];
	/** The caller's trace: the run that answers it is a part of it. */
	traceId?: string;
	/** What the pipeline knows of it; a JSON object. */
	facts?: Record<string, unknown>;
}

export interface EventQuery {
	session?: string | undefined;
	state?: Disposition["state"] | undefined;
	channel?: string | undefined;
	limit: number;
	/** Only events recorded before this one. */
	before?: string | undefined;
}

export interface SessionInfo {
	session: string;
	createdAt: number;
	updatedAt: number;
	turns: number;
	/** The beginning of the newest user message. */
	title: string;
}

/** Calls are synchronous here because the embedded store is; each one is its own transaction unless it runs as a Bus participant. */
export interface Ledger {
	/** Several calls as one transaction. */
	atomically<T>(work: () => T): T;
	/** Records an inbound event; false when the session already has its idempotency key, or the account its source id. */
	accept(event: InboundEvent): boolean;
	/** Changes what became of an event. */
	dispose(eventId: string, disposition: Disposition): void;
	event(eventId: string): InboundEvent | undefined;
	eventByKey(session: string, idempotencyKey: string): InboundEvent | undefined;
	eventBySource(channel: string, account: string, sourceId: string): InboundEvent | undefined;
	/** Newest first. */
	events(query: EventQuery): InboundEvent[];
	/** Accepted, not started, oldest first. */
	queued(): InboundEvent[];
	/** Forgets rejected events but the newest `keep`: strangers must not be able to fill the disk. Returns how many. */
	forgetRejected(keep: number): number;
	/** Saves a settled run with everything that belongs to it: one transaction (I5). Saving the same run twice is a conflict. */
	settle(turn: Turn): void;
	/** Replaces the trace of a settled run: deliveries end later than the run. */
	retrace(runId: string, trace: Trace): void;
	turn(runId: string): Turn | undefined;
	/** Newest first; `before` is a run id. */
	turns(query: { session?: string; limit: number; before?: string }): Turn[];
	/** Most recently used first; more than `limit` when the last of them were used at the same moment, so that `before` skips none. */
	sessions(query: { limit: number; before?: number }): SessionInfo[];
	session(label: string): SessionInfo | undefined;
}
