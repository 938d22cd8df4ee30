/** The adapter protocol: the lines between the daemon and an adapter process, in their wire spelling (docs/adapter-protocol.md). Any language can speak it. */

import type { StreamEvent } from "@nexus-stream/protocol";

export type { AdapterField, AdapterInfo, AdapterSetting, HealthReport, LengthUnit } from "./info.ts";

/** Where a message goes. `to` is the platform's own address of a chat; more fields are the platform's own. */
export interface Target {
	to: string;
	thread_id?: string;
	/** The inbound message this answers, for platforms that show it. */
	reply_to?: string;
	/** A chat with one person, when known. */
	direct?: boolean;
	[extra: string]: unknown;
}

/** Fields of every line of a delivery. Text positions count UTF-16 units of the answer's text, all messages joined. */
export interface DeliveryFields {
	/** Which delivery; the same run may go to several targets of one account. */
	delivery?: string;
	runId?: string;
	/** Offset in the run's log. */
	offset?: number;
}

/** Where a delivery resumes after a crash. */
export interface Resume {
	/** Everything before this source position is in finished messages; tokens begin here. */
	position: number;
	/** How many messages there are already: finished, open and uncertain. */
	ordinal: number;
	/** The open message that begins at `position`: it is edited on, not created again. */
	messageId?: string;
	/** The last `to` that was reported of the open message: it is not shortened before the tokens have come that far. */
	shown?: number;
	/** The `carry` of the last message_sent. */
	carry?: string;
	/** A creation at `position` with an unknown outcome: look it up by its nonce before creating. */
	uncertain?: { nonce: string; to?: number };
}

/** Daemon → `stream` process. */
export type StreamLine =
	| (Extract<StreamEvent, { type: "stream_start" }> & DeliveryFields & { resume?: Resume; options?: DeliveryOptions })
	| (Exclude<StreamEvent, { type: "stream_start" | "stream_end" | "stream_error" }> & DeliveryFields)
	| (Extract<StreamEvent, { type: "stream_end" }> & DeliveryFields & RunFacts & { reason?: string })
	/** `damagedFrom`: the text from this source position on is not what was produced. */
	| (Extract<StreamEvent, { type: "stream_error" }> & DeliveryFields & { damagedFrom?: number })
	| ({ type: "part"; modality: string; contentType: string; payload: string } & DeliveryFields)
	/** The intent is on disk: create the message now. */
	| ({ type: "ack"; nonce: string } & DeliveryFields)
	| (TypingLine & DeliveryFields);

/** Shows or hides typing. */
export interface TypingLine extends Activity {
	type: "typing";
	target: Target;
	on: boolean;
}

/** The work that a waiting person can see. */
export interface Activity {
	/** The tool that runs, in words for a person: it may name arguments. */
	text?: string;
	/** The tool's name alone, for places where strangers read. */
	tool?: string;
}

/** Facts about the run of an answer, for platforms that show them. */
export interface RunFacts {
	agent?: string;
	model?: string;
	phase?: string;
	usage?: Readonly<Record<string, number>>;
}

export interface DeliveryOptions {
	/** Show tool status in the message while it is being written. */
	tools?: boolean;
	/** Said in the first message until there is something else to say; absent or empty = the message begins with its text. */
	placeholder?: string;
	/** Shown when the answer failed; empty = nothing. */
	errorText?: string;
}

/** `stream` process → daemon (the five statuses, with fields added), and some more. */
export type StreamStatus =
	| ({ type: "message_created"; messageId: string; nonce?: string; from?: number } & DeliveryFields)
	| ({ type: "message_updated"; messageId: string; chars: number; to?: number } & DeliveryFields)
	| ({
			type: "message_sent";
			messageId: string;
			final: boolean;
			nonce?: string;
			from?: number;
			to?: number;
			/** `send`: how much of the line's `text` is out with this message and those before it, in UTF-16 units. */
			chars?: number;
			/** The markdown state at the start of the next message (inside a code fence, say): stored with the cursor, returned in `resume`. */
			carry?: string;
	  } & DeliveryFields)
	/** A message that showed no text of the answer is gone again, or was announced and never made. */
	| ({ type: "message_removed"; messageId?: string; nonce?: string } & DeliveryFields)
	| ({ type: "delivery_complete"; messageIds: string[] } & DeliveryFields)
	| ({
			type: "delivery_error";
			error: string;
			code?: PlatformFault;
			nonce?: string;
			retryAfterMs?: number;
	  } & DeliveryFields)
	/** About to create a message that begins at `from`; created only after the `ack`. `to` when its text is decided: given back in `resume.uncertain`. */
	| ({ type: "message_creating"; nonce: string; from: number; to?: number; ordinal: number } & DeliveryFields)
	/** The platform slowed the whole account down. */
	| { type: "rate_limited"; retryAfterMs: number; account?: string }
	/** A platform call, for people who watch (the channel lab, debug logs). */
	| ({ type: "call"; call: string; ms: number; ok: boolean; detail?: string } & DeliveryFields);

/** Daemon → `send` process: a line per message; the process may stay for more or end after each. */
export type SendLine =
	| ({ type: "send" } & SendBody)
	/** Does it exist? Each message but the last is reported by message_sent; `found` answers for the rest. The daemon always sends `from` and `to`; they may be left out in a manual test. */
	| ({ type: "find" } & Omit<SendBody, "from" | "to"> & Partial<Pick<SendBody, "from" | "to">>)
	/** A message with a button for each choice; pressing one is a `choice` of `monitor`. */
	| ({ type: "ask" } & SendBody & Question)
	/** The question is settled: its message says `text` instead, and has no buttons. Answered by message_sent. */
	| { type: "asked"; delivery: string; nonce: string; target: Target; messageId: string; id: string; text: string }
	| (TypingLine & { delivery?: string; runId?: string });

export interface Question {
	/** Names the question; comes back with the choice. Ids are checked by `questionFault`. */
	id: string;
	choices: readonly Choice[];
}

export interface Choice {
	/** Comes back when its button is pressed. */
	id: string;
	/** On the button. */
	label: string;
	/** Red, where the platform has colours. */
	danger?: boolean;
}

export interface SendBody {
	delivery: string;
	runId?: string;
	nonce: string;
	target: Target;
	/** Markdown. */
	text: string;
	/** Source positions that the text stands for; with `done`, what is left of it. */
	from: number;
	to: number;
	attachments?: readonly WireAttachment[];
	/** A part is out already. Only for adapters with the field `pieces`. */
	done?: LineDone;
	/** Facts about the text that ends with this line. */
	facts?: RunFacts;
}

export interface LineDone {
	/** How many messages. The next one's nonce is `<nonce>.<pieces + 1>`. */
	pieces: number;
	/** How much of the text, in UTF-16 units. */
	chars: number;
}

/** `send` process → daemon: message_sent (final on the last of the line), delivery_error, rate_limited, call, or the answer to `find`. */
export type SendStatus =
	| Extract<StreamStatus, { type: "message_sent" | "delivery_error" | "rate_limited" | "call" }>
	/** Belongs to the `find` of its nonce, whatever else it carries. `known` false: this platform cannot tell. Without `messageId` the messages that no message_sent reported do not exist. */
	| { type: "found"; nonce: string; known: boolean; messageId?: string };

export interface WireAttachment {
	name: string;
	contentType: string;
	/** Base64. */
	data: string;
}

/** `monitor` process → daemon. */
export type MonitorLine =
	| ({ type: "message" } & InboundMessage)
	/** A person pressed a button. */
	| ({ type: "choice" } & InboundChoice)
	/** The platform had taken a message of ours, and says now that it did not reach its reader. */
	| ({ type: "message_failed" } & MessageFailure)
	/** Whether the platform can be reached, when that changes. */
	| { type: "listening"; ok: boolean; error?: string }
	| { type: "webhook_response"; id: string; status: number; headers?: Record<string, string>; body?: string };

export interface MessageFailure {
	messageId: string;
	/** The nonce that it was created with, where the platform gives it back. */
	nonce?: string;
	/** For a person. */
	error: string;
}

export interface InboundMessage {
	/** The platform's id of this message: the same message redelivered has the same id. */
	eventId: string;
	from: { id: string; name?: string };
	chat: { id: string; type: "direct" | "group"; name?: string };
	text: string;
	attachments?: WireAttachment[];
	/** A group message that addresses the agent. */
	mention?: boolean;
	/** Where an answer goes. */
	target: Target;
	/** Milliseconds since the epoch. */
	ts: number;
}

/** A person pressed a button of a question. `id` and `choice` come from the button, everything else from the platform. */
export interface InboundChoice {
	/** The platform's id of the press. */
	eventId: string;
	id: string;
	choice: string;
	from: { id: string; name?: string };
	chat: { id: string; type: "direct" | "group" };
	/** The message that has the button. */
	messageId?: string;
}

/** Daemon → `monitor` process. */
export type MonitorCommand =
	/** The message is safe with the daemon: the adapter may confirm it to the platform. */
	| { type: "ack"; eventId: string }
	/** The press was taken; only the person who pressed sees `text`. */
	| { type: "chosen"; eventId: string; text?: string }
	/** A request to the account's webhook address, as it came; the body is base64 of the raw bytes. */
	| {
			type: "webhook";
			id: string;
			method: string;
			query: string;
			headers: Record<string, string>;
			body: string;
	  };

/** `monitor`, `send` or `stream` process → daemon, with the field `notes`: what the account has to remember. */
export type KeepLine =
	/** The same text noted twice is one note. */
	{ type: "note"; id: string; text: string } | { type: "state"; id: string; key: string; value: string };

/** Daemon → process: the line of this id is on record. */
export interface NotedLine {
	type: "noted";
	id: string;
}

/** Why a platform refused, in words that are the same for all platforms. */
export type PlatformFault =
	/** Slow down; nothing happened. */
	| "rate_limited"
	/** The credentials are wrong or lack a permission. */
	| "denied"
	/** The chat or message is not there (any more). */
	| "gone"
	/** The platform will never take this content. */
	| "invalid"
	/** Down, or not reachable; nothing happened. */
	| "unavailable"
	/** The call was sent and no answer came: it may or may not have happened. */
	| "unknown_outcome";
