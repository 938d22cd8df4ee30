/** Turns: settled runs, with their messages, tool calls, usage and trace. */

import type { ContentPart, EndReason, SignedReasoning, Usage, UsageShare } from "@nexus-stream/protocol";
import { type Reading, writesOf } from "../../std/write.ts";
import type { StoredAttachment } from "../inbox/port.ts";

export type TurnStatus = "completed" | "aborted" | "failed";

export interface StoredMessage {
	role: "user" | "assistant";
	/** The stream that carried it, for an assistant message. */
	messageId?: string;
	/** Which agent said it, in a run of several. */
	agent?: string;
	/** Hidden text: later runs do not get it, and the chat does not show it. */
	visible?: false;
	text: string;
	attachments?: StoredAttachment[];
	/** A user's message: the inbound event it came with. */
	eventId?: string;
	/** Cards, pictures, sound … of an assistant message, in order. */
	parts?: StoredPart[];
	/** The model's reasoning before and between the text; only where it is to be kept. */
	reasoning?: string;
	/** The part of the reasoning that the model gets back, signed by its provider. */
	signedReasoning?: SignedReasoning[];
}

/** A card, picture or other content that an assistant message showed in addition to its text. */
export interface StoredPart {
	modality: string;
	contentType: string;
	/** Replaces the part for readers who cannot see it: a card's title, the kind of a file. */
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
	/** Which agent made it, in a run of several. */
	agent?: string;
	/** JSON text. */
	args?: string;
	status: "completed" | "failed";
	summary?: string;
	/** JSON text. */
	result?: string;
	/** The tool's answer in parts, where it is more than text. */
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
	/** How it divides among agents and models, where that is known. */
	usageBy?: UsageShare[];
	messages: StoredMessage[];
	toolCalls: StoredToolCall[];
	/** It was interrupted, and the session started over without it: no model gets it. */
	rolledBack?: true;
	/** The run that this one continues, and the run that continues this one. */
	continues?: string;
	continuedBy?: string;
	/** How the message came to be a run and the answer was delivered; absent for a run that came by another way. */
	trace?: Trace;
}

/** The way of a message through the pipeline, for a person who asks why it took so long. */
export interface Trace {
	channel: string;
	account: string;
	/** The author, as the platform names them. */
	sender: string;
	/** In order; times are milliseconds, `at` since the epoch. */
	stages: StageTiming[];
	/** Calls of plugins, in order. */
	hooks: HookCall[];
	/** Ids of the deliveries that bring the answer to its readers. */
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

export interface Turns {
	get(runId: string): Reading<Turn | undefined>;
	/** The run id of a session's newest turn. */
	newest(session: string): Reading<string | undefined>;
	/** By when they settled, newest first; `before` is a run id. */
	list(query: { session?: string; limit: number; before?: string }): Reading<Turn[]>;
	/** By when their runs began, newest first, in whatever order they settled; `before` is the id of a run that need not have settled. */
	begun(query: { session?: string; limit: number; before?: string }): Reading<Turn[]>;
}

export interface TurnOps {
	/** Saves a settled run with everything that belongs to it (I5). The same run again is a duplicate. */
	settle(turn: Turn): void;
	/** Another run continues this one. Refused unless it is its session's newest turn, was cut off, and has not been continued yet. */
	continued(runId: string, by: string): void;
	/** Replaces the trace of a settled run: deliveries end later than the run. */
	retrace(runId: string, trace: Trace): void;
	/** Takes a settled run out of the context; it stays on record. Once more changes nothing. */
	rollBack(runId: string): void;
}

export const turnWrites = writesOf<TurnOps>("turns", ["settle", "continued", "retrace", "rollBack"]);
