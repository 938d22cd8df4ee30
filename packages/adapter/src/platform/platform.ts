/** What the author of an adapter writes: the platform's calls and nothing else. The kit does argv, lines, drafts, pacing, splitting and resume. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { ToolCall } from "../draft/tool-line.ts";
import type { Notes } from "../memory/notes.ts";
import type {
	Activity,
	AdapterInfo,
	HealthReport,
	InboundChoice,
	InboundMessage,
	MessageFailure,
	PlatformFault,
	Question,
	RunFacts,
	Target,
	WireAttachment,
} from "../port.ts";

export interface Account {
	id: string;
	/** Settings and secrets of the account, as strings. */
	settings: Readonly<Record<string, string>>;
}

export interface Tools {
	log: Log;
	clock: Clock;
	/** A small durable memory for the account: polling positions and the like. */
	state: {
		get(key: string): string | undefined;
		set(key: string, value: string): void;
		/** What was set last is durable: for what must not be done before. Absent: it is at once. */
		recorded?(): Promise<void>;
	};
	/** Tells people how the account is: whether the platform can be heard, or why not. Saying the same again is nothing. Absent outside `monitor`. */
	listening?(error?: string): void;
	/** What the account has sent, for `openSentLog`. Absent: nothing outlives the process. */
	notes?: Notes;
}

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

export interface Platform {
	info: AdapterInfo;
	/** Markdown → the platform's dialect. Never loses text. */
	render(markdown: string): string;
	/** Length of rendered text in the platform's unit; at most `info.limits.textMax` fits one message. */
	measure(rendered: string): number;
	/** How fast previews may go; `final` writes are not slowed by it. */
	pace(target: Target): Pace;
	open(account: Account, tools: Tools): Session | Promise<Session>;
}

export interface SendOptions {
	/** The same for every try of the same message: platforms with idempotent creation use it. */
	nonce: string;
	/** Of the run that a message belongs to. Absent: nothing is known. */
	facts?: RunFacts & { runId?: string };
	/** Of `create`, where `supports` has `ask`: the message gets a button for each choice. */
	question?: Question;
	/** Previews of sessions with `toolsApart`: the newest tool calls. */
	tools?: readonly ToolCall[];
	/** Nothing follows in this message: notify the reader now, where the platform distinguishes. */
	final: boolean;
	signal: AbortSignal;
}

/** An account that is signed in. Every call throws PlatformError. Retries are the kit's: an SDK's own are turned off. */
export interface Session {
	/**
	 * Inbound messages until the signal aborts. `emit` resolves once the daemon has the message safe: confirm to the platform after it. It
	 * rejects when the adapter stops, and so does `press`.
	 */
	monitor?(
		emit: (message: InboundMessage) => Promise<void>,
		signal: AbortSignal,
		press?: (press: Press) => Promise<void>,
	): Promise<void>;
	/** A webhook request: verify first, then say what to answer and what it brought. The answer is sent once the messages are safe. */
	webhook?(request: WebhookRequest): Promise<WebhookAnswer>;

	/** Default: the platform's. For sessions that learn from what the platform answers (bucket headers). */
	pace?(target: Target): Pace;
	/** Default: `edit` when there is an edit call, else `whole`. */
	style?(target: Target): DraftStyle;
	/** Creates a message with rendered text. */
	create(target: Target, text: string, options: SendOptions): Promise<{ messageId: string }>;
	/** Replaces the text of a message. Saying the same again is a success. */
	edit?(target: Target, messageId: string, text: string, options: SendOptions): Promise<void>;
	/** Where `supports` has `ask`: says what came of a question in its message's place, and takes the buttons away. Saying it again is a success. */
	settle?(target: Target, messageId: string, text: string, options: SendOptions): Promise<void>;
	/** Takes a message away that only showed what was being done. Absent: messages begin with their text. */
	remove?(target: Target, messageId: string, options: SendOptions): Promise<void>;
	/** Style `append`: opens a stream, adds rendered-as-markdown text to it, closes it. */
	start?(target: Target, markdown: string, options: SendOptions): Promise<{ messageId: string }>;
	append?(target: Target, messageId: string, markdown: string, options: SendOptions): Promise<void>;
	stop?(target: Target, messageId: string, options: SendOptions): Promise<void>;
	/** Style `preview`: previews get the tool calls in their options, not drawn below the text, and one comes at once when they change. */
	readonly toolsApart?: boolean;
	/** Style `preview`: shows a text that nobody keeps. */
	preview?(target: Target, draftId: number, text: string, options: SendOptions): Promise<void>;

	/** Style `append`: shows beside the messages what is being done; empty ends it. */
	status?(target: Target, text: string): Promise<void>;
	/** `doing` is only for platforms with `typing.text`. */
	typing?(target: Target, on: boolean, doing?: Activity): Promise<void>;
	/** For platforms whose messages carry text and files together (mail): what `create` and `attach` do, in one message. */
	createWith?(
		target: Target,
		text: string,
		attachments: readonly WireAttachment[],
		options: SendOptions,
	): Promise<{ messageId: string }>;
	attach?(target: Target, attachment: WireAttachment, options: SendOptions): Promise<{ messageId: string }>;
	/** Looks for a message that may have been created with this nonce. Undefined: it was certainly not. Absent: the platform cannot tell. */
	find?(target: Target, nonce: string, text: string, signal?: AbortSignal): Promise<{ messageId: string } | undefined>;
	health(): Promise<HealthReport>;
	close?(): Promise<void>;
}

/** A button was pressed. */
export interface Press {
	choice: InboundChoice;
	/** Called once the daemon has the choice; `note` is for whoever pressed, and nobody else. */
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
	/** Buttons that were pressed. The answer does not wait for them: a press that is lost can be repeated. */
	presses?: readonly Press[];
	/** Messages of ours that the platform had taken and did not deliver. */
	failures?: readonly MessageFailure[];
}

/** A platform said no, or did not answer. */
export class PlatformError extends Error {
	readonly fault: PlatformFault;
	readonly retryAfterMs: number | undefined;

	constructor(fault: PlatformFault, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
		super(message, { cause: options.cause });
		this.name = "PlatformError";
		this.fault = fault;
		const { retryAfterMs } = options;
		// A time that cannot be read is none: one of it in the account's gate, and no later refusal would be obeyed.
		this.retryAfterMs = retryAfterMs !== undefined && retryAfterMs >= 0 ? retryAfterMs : undefined;
	}
}
