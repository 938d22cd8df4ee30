/** The calls of a signed-in account: `Sending` for every platform, and one small interface for each thing that only some platforms can do. */

import type { ToolCall } from "../draft/tool-line.ts";
import type {
	Activity,
	HealthReport,
	InboundChoice,
	InboundMessage,
	MessageFailure,
	Question,
	RunFacts,
	Target,
	WireAttachment,
} from "../port.ts";

/** How a message of an answer appears on a target, decided once when the delivery begins. */
export type DraftStyle =
	/** create, then edit. */
	| "edit"
	/** start, append, stop: the platform streams by itself. */
	| "append"
	/** preview as often as liked, then one create. */
	| "preview"
	/** One create at the end. */
	| "whole";

export interface Pace {
	/** Least time between two writes to one target. */
	targetIntervalMs: number;
	/** Least time between two writes of the account, all targets together. */
	accountIntervalMs?: number;
}

export interface SendOptions {
	/** The same for every try of the same message: platforms with idempotent creation use it. */
	nonce: string;
	/** An earlier try of this message left no record of its outcome: the message may exist. */
	inDoubt?: boolean;
	/** About the run that the message belongs to. */
	facts?: RunFacts & { runId?: string };
	/** For `create` of platforms with `asking`: the message gets a button for each choice. */
	question?: Question;
	/** For previews with `toolsApart`: the newest tool calls. */
	tools?: readonly ToolCall[];
	/** Nothing follows in this message: notify the reader now, where the platform distinguishes. */
	final: boolean;
	signal: AbortSignal;
}

export interface CreatedMessage {
	messageId: string;
}

/** The calls that every platform has. Each throws PlatformError. The kit retries, and records each creation; an SDK's own retries are turned off. */
export interface Sending {
	/** Creates a message with rendered text. */
	create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage>;
	/** Looks for a creation with an unknown outcome; the kit asks its own record first. Undefined: it certainly did not happen. Absent: the platform cannot look. */
	find?(target: Target, nonce: string, text: string, signal?: AbortSignal): Promise<CreatedMessage | undefined>;
	/** Default: `edit` when the session can edit, else `whole`. */
	style?(target: Target): DraftStyle;
	/** Default: the platform's. For sessions that learn from the platform's answers (bucket headers). */
	pace?(target: Target): Pace;
	/** `doing` is only for platforms with `typing.text`. */
	typing?(target: Target, on: boolean, doing?: Activity): Promise<void>;
	health(): Promise<HealthReport>;
	close?(): Promise<void>;
}

export interface Editing {
	/** Replaces the text of a message. Repeating the same text succeeds. */
	edit(target: Target, messageId: string, text: string, options: SendOptions): Promise<void>;
	/** Deletes a message that only showed progress. Absent: messages begin with their text. */
	remove?(target: Target, messageId: string, options: SendOptions): Promise<void>;
}

/** Style `append`. */
export interface Streaming {
	start(target: Target, markdown: string, options: SendOptions): Promise<CreatedMessage>;
	append(target: Target, messageId: string, markdown: string, options: SendOptions): Promise<void>;
	stop(target: Target, messageId: string, options: SendOptions): Promise<void>;
	/** Shows the running tool outside the message; an empty text removes it. */
	status?(target: Target, text: string): Promise<void>;
}

/** Style `preview`. */
export interface Previewing {
	/** Previews get the tool calls in their options instead of below the text, and one is sent at once when they change. */
	readonly toolsApart?: boolean;
	/** Shows a text that the platform does not keep. */
	preview(target: Target, draftId: number, text: string, options: SendOptions): Promise<void>;
}

/** Questions with buttons; `create` gets the question in its options. */
export interface Asking {
	/** Replaces the question's text by its outcome and removes the buttons. Repeating it succeeds. */
	settle(target: Target, messageId: string, text: string, options: SendOptions): Promise<void>;
}

export interface Attaching {
	/** The step before the message, on platforms that store files first; `attach` gets its result. People see nothing of it. */
	upload?(attachment: WireAttachment, signal: AbortSignal): Promise<string>;
	/** `uploaded`: the result of `upload`, empty without it. */
	attach(target: Target, attachment: WireAttachment, options: SendOptions, uploaded: string): Promise<CreatedMessage>;
	/** For platforms whose messages carry text and files together (mail): `create` and `attach` in one message. */
	createWith?(
		target: Target,
		text: string,
		attachments: readonly WireAttachment[],
		options: SendOptions,
	): Promise<CreatedMessage>;
}

export type Emit = (message: InboundMessage) => Promise<void>;
export type OnPress = (press: Press) => Promise<void>;

export interface Listening {
	/** Inbound messages until the signal aborts. Confirm one to the platform when `emit` resolves: the daemon has it. `emit` and `press` reject when the adapter stops. */
	monitor(emit: Emit, signal: AbortSignal, press: OnPress): Promise<void>;
}

export interface Webhooks {
	/** Verifies a request and reads it. The kit sends the answer once the daemon has stored the messages. */
	webhook(request: WebhookRequest): Promise<WebhookAnswer>;
}

/** A signed-in account and its capabilities. A class that implements one names itself: `readonly editing = this`. */
export interface Session extends Sending {
	readonly editing?: Editing;
	readonly streaming?: Streaming;
	readonly previewing?: Previewing;
	readonly asking?: Asking;
	readonly attaching?: Attaching;
	readonly listening?: Listening;
	readonly webhooks?: Webhooks;
}

/** A button was pressed. */
export interface Press {
	choice: InboundChoice;
	/** Called once the daemon has the choice; only the person who pressed sees `note`. */
	answer?(note: string | undefined): Promise<void>;
}

export interface WebhookRequest {
	method: string;
	query: URLSearchParams;
	/** Names in lower case. */
	headers: Readonly<Record<string, string>>;
	/** The raw bytes: signatures are over these. */
	body: Buffer;
}

export interface WebhookAnswer {
	status: number;
	headers?: Record<string, string>;
	body?: string;
	messages: InboundMessage[];
	/** Buttons that were pressed. The answer does not wait for them: a lost press can be repeated. */
	presses?: readonly Press[];
	/** Our messages that the platform accepted and then failed to deliver. */
	failures?: readonly MessageFailure[];
}
