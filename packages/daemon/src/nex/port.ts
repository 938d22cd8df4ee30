/** The port of outbound delivery: its configuration, and the interfaces of its users. */

import type { AdapterInfo, Choice, HealthReport, Question, StreamStatus, Target } from "@nexus-stream/adapter/port";
import type { Delivery, DeliveryCounts, DeliveryQuery, NewDelivery } from "../ledger/deliveries/port.ts";
import type { Write } from "../std/write.ts";
import type { InboundHandlers, WireWebhookAnswer, WireWebhookRequest } from "./accounts/monitor-port.ts";
import type { ProcessStatus } from "./accounts/process-supervisor.ts";

/** By channel. */
export type AdapterConfig = Readonly<Record<string, ChannelConfig>>;

export interface ChannelConfig {
	/** The command of the adapter, without the verb. Default: the bundled adapter of the channel's name. */
	command?: readonly string[];
	/** Added to the few variables that an adapter inherits from the daemon's environment. */
	env?: Readonly<Record<string, string>>;
	/** By account id. */
	accounts: Readonly<Record<string, AccountConfig>>;
	streaming?: StreamingConfig;
	/** For channels without streaming: when a part of the answer becomes a message. */
	blocks?: BlocksConfig;
	typing?: { enabled?: boolean; intervalMs?: number };
	/** Sent when an answer failed; empty or absent = nothing. */
	errorText?: string;
}

export interface StreamingConfig {
	/** False: every answer is sent only when it is finished. */
	enabled?: boolean;
	/**
	 * `draft_edit`: a growing message, where the platform supports it. `accumulate`: nothing before the answer is finished; then one message for
	 * each of its assistant messages, more where one is too long. `blocks`: complete messages while the answer is written. `off`: as accumulate,
	 * without typing. Default: the first of draft_edit, blocks and accumulate that the adapter supports.
	 */
	mode?: "draft_edit" | "accumulate" | "blocks" | "off";
	/** Shows reasoning, each passage as a separate message; without it reasoning is never shown (I8). */
	reasoning?: boolean;
	/** Sends images, audio, files and cards of an answer; default true. */
	parts?: boolean;
	/** Shows tool status while the answer is written; default true for growing messages, false otherwise. */
	tools?: boolean;
	/** Text of the first message until the answer begins; default: none. */
	placeholder?: string;
}

export interface BlocksConfig {
	minChars?: number;
	maxChars?: number;
	idleMs?: number;
	humanDelayMs?: { min: number; max: number } | null;
}

export interface AccountConfig {
	/** Settings and secrets, passed to the adapter in a file that only this user can read. */
	settings: Readonly<Record<string, string>>;
	/** Overrides the channel's settings, key by key. */
	streaming?: StreamingConfig;
}

export interface AccountName {
	channel: string;
	id: string;
}

/** The effect of a new configuration. */
export interface AccountChanges {
	added: AccountName[];
	changed: AccountName[];
	removed: AccountName[];
}

/** Delivers a run, live or finished, or a separate text. */
export type DeliverRequest = DeliverDestination & ({ runId: string } | NewText);
export type RunDelivery = DeliverDestination & { runId: string };

interface NewText {
	text: string;
	/** The name of its log. Default: a new name. */
	log?: string;
	/** Writes that commit with the log. */
	with?: readonly Write[];
}

interface DeliverDestination {
	account: AccountName;
	target: Target;
	options?: DeliverOptions;
}

/** Options of one delivery. Default: the channel's configuration. */
export interface DeliverOptions {
	/** Sends the answer only when it is finished. */
	disableStreaming?: boolean;
	/** Shows tool status while the answer is written. */
	tools?: boolean;
	/** Sends reasoning to the adapter. */
	reasoning?: boolean;
	/** Buttons of the message; set only by `ask`. */
	ask?: Question;
}

/** A delivery and the write that records it. */
export interface PlannedDelivery {
	delivery: NewDelivery;
	write: Write;
}

/** A question to the people of a chat. */
export interface AskRequest {
	account: AccountName;
	target: Target;
	/** Identifies the question on all platforms: at most 32 of `[A-Za-z0-9_-]`. */
	id: string;
	/** Markdown. */
	text: string;
	choices: readonly AskChoice[];
}

export interface AskChoice extends Choice {
	/** The reply to write where there are no buttons: `approve K7Q2`. */
	reply: string;
}

export interface AccountStatus {
	channel: string;
	account: string;
	/** The adapter's answer to `info`. */
	info?: AdapterInfo;
	/** Why there is no such answer. */
	infoError?: string;
	/** The processes that were started. */
	processes: Partial<Record<"stream" | "send" | "monitor", ProcessStatus>>;
	/** The platform's rate limit pauses the whole account until then. */
	pausedUntil?: number;
	/** Deliveries that run or wait. */
	deliveries: number;
	restarts: number;
	garbage: number;
	lastError?: string;
}

/** A call to a platform, as the adapter reported it. */
export type PlatformCall = Extract<StreamStatus, { type: "call" }> & { channel: string; account: string; at: number };

/** Deliveries of runs and texts. */
export interface DeliveryPort {
	/**
	 * Resolves once the delivery is on record; the same run, account and chat is the same delivery. A failed or stale delivery resumes where it
	 * stopped, unless it is unknown which of its messages were created.
	 */
	deliver(request: DeliverRequest): Promise<Delivery>;
	/**
	 * The delivery of a run that is about to begin, and the write that records it. The write must commit with the run's begin, so that neither
	 * exists without the other (I7). Nothing happens before `launch`. Throws `not_found` for an account that is not configured.
	 */
	planDelivery(request: RunDelivery): PlannedDelivery;
	/** Starts a planned delivery whose write is durable. */
	launch(delivery: NewDelivery): void;
	/** Resolves when the delivery has ended, or this process stops working on it. */
	settled(delivery: string): Promise<Delivery>;
	deliveries(query: DeliveryQuery): Promise<Delivery[]>;
	/** Recorded deliveries of an account, by state. */
	counts(channel: string, account: string): Promise<DeliveryCounts>;
	/** Deliveries that run or wait in this process. */
	readonly live: number;
}

/** Questions with buttons. */
export interface QuestionPort {
	/**
	 * Sends a question to a chat: with a button for each choice where the platform has them, otherwise with the replies to write. Resolves once
	 * it is on record. The same id is asked only once in a chat, also after a crash.
	 */
	ask(request: AskRequest): Promise<Delivery>;
	/** Shows the outcome in every chat that was asked: in place of the buttons, or as a message. Resolves when each chat was tried. */
	settleQuestion(id: string, text: string): Promise<void>;
}

/** The configured accounts and their adapters. */
export interface AccountPort {
	/** Every configured account. */
	accounts(): AccountStatus[];
	/** Calls the listener whenever `accounts` may have changed, except by the passing of time. Returns how to stop it. */
	onAccounts(listener: () => void): () => void;
	health(channel: string, account: string): Promise<HealthReport>;
	info(channel: string): Promise<AdapterInfo>;
	/**
	 * Applies another configuration. Removed or changed accounts accept no more messages once it resolves; their deliveries may finish, then
	 * their processes end.
	 */
	reconfigure(adapters: AdapterConfig): Promise<AccountChanges>;
	/** Starts the monitor of an account; once per account. */
	monitor(channel: string, account: string, handlers: InboundHandlers): void;
}

export interface WebhookPort {
	/** Checks a request before its body is read. Throws `not_found`, or `forbidden` when it has no signature. */
	admitWebhook(channel: string, account: string, head: Omit<WireWebhookRequest, "body">): void;
	webhook(channel: string, account: string, request: WireWebhookRequest): Promise<WireWebhookAnswer>;
}

export interface Outbound extends DeliveryPort, QuestionPort, AccountPort, WebhookPort {
	/** Ends the processes that a killed daemon left in the data directory, then takes over. Call once, after the runs are recovered. */
	start(): Promise<void>;
	/** Takes over the unfinished deliveries of dead daemons (ST19). Can be repeated. */
	takeOver(): Promise<void>;
	/** Hands waiting changes to the Bus synchronously, for a process that has to end. */
	flush(): void;
	/** Lets deliveries of finished answers end until the deadline; the next process finishes the others. */
	stop(deadlineMs: number): Promise<void>;
}
