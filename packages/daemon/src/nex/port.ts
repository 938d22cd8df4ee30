/** What NEX is configured with and what it tells: channels, accounts, deliveries. */

import type { AdapterInfo, Choice, HealthReport, Question, StreamStatus, Target } from "@nexus-stream/adapter/host";
import type { Delivery, DeliveryCounts, DeliveryQuery, NewDelivery } from "../ledger/ledger.ts";
import type { Write } from "../std/write.ts";
import type { IsUrgent, OnChoice, OnMessage, WireWebhookAnswer, WireWebhookRequest } from "./accounts/monitor-port.ts";
import type { ProcessStatus } from "./accounts/process-supervisor.ts";

/** Per channel. */
export type AdapterConfig = Readonly<Record<string, ChannelConfig>>;

export interface ChannelConfig {
	/** How the adapter is run, without the verb; a bundled one by its channel's name when left out. */
	command?: readonly string[];
	/** Added to the little that an adapter process sees of the daemon's environment. */
	env?: Readonly<Record<string, string>>;
	/** By the account's id. */
	accounts: Readonly<Record<string, AccountConfig>>;
	streaming?: StreamingConfig;
	/** For channels without streaming: when a piece of the answer becomes a message. */
	blocks?: BlocksConfig;
	typing?: { enabled?: boolean; intervalMs?: number };
	/** Said when an answer failed; empty or absent = nothing. */
	errorText?: string;
}

export interface StreamingConfig {
	/** False: every answer is sent when it is finished. */
	enabled?: boolean;
	/**
	 * `draft_edit`: a message that grows, where the platform can. `accumulate`: nothing before the answer is finished; then one message for each
	 * of its assistant messages, more where one is too long. `blocks`: messages as they become whole. `off`: as accumulate, without typing.
	 * Default: the first that the adapter can do of growing, blocks and whole.
	 */
	mode?: "draft_edit" | "accumulate" | "blocks" | "off";
	/** Reasoning is shown, each passage in a message of its own; never otherwise (I8). */
	reasoning?: boolean;
	/** Images, audio, files and cards of an answer are sent too; default true. */
	parts?: boolean;
	/** Tool status is shown while the answer is written; default true where messages grow, false elsewhere. */
	tools?: boolean;
	/** What the first message says until there is text; default nothing: the message begins with its text. */
	placeholder?: string;
}

export interface BlocksConfig {
	minChars?: number;
	maxChars?: number;
	idleMs?: number;
	humanDelayMs?: { min: number; max: number } | null;
}

export interface AccountConfig {
	/** Settings and secrets, handed to the adapter in a file that only this user can read. */
	settings: Readonly<Record<string, string>>;
	/** Stronger than the channel's, key by key. */
	streaming?: StreamingConfig;
}

export interface AccountName {
	channel: string;
	id: string;
}

/** What another configuration brought. */
export interface AccountChanges {
	added: AccountName[];
	changed: AccountName[];
	removed: AccountName[];
}

/** What is delivered: a run, live or finished, or a text of its own. */
export type DeliverRequest = DeliverDestination & ({ runId: string } | NewText);
export type RunDelivery = DeliverDestination & { runId: string };

interface NewText {
	text: string;
	/** What its log is called; a new name when left out. */
	log?: string;
	/** Commits with the log. */
	beside?: readonly Write[];
}

interface DeliverDestination {
	account: AccountName;
	target: Target;
	options?: DeliverOptions;
}

/** For this delivery; where one is left out the channel's config holds. */
export interface DeliverOptions {
	/** The answer is sent when it is finished. */
	disableStreaming?: boolean;
	/** Tool status is shown while the answer is written. */
	tools?: boolean;
	/** Reasoning is sent to the adapter. */
	reasoning?: boolean;
	/** The message has these buttons. Only `ask` makes such deliveries. */
	ask?: Question;
}

export type DeliveryInfo = Delivery;

/** A question to the people of a chat. */
export interface AskRequest {
	account: AccountName;
	target: Target;
	/** Names the question everywhere: at most 32 of `[A-Za-z0-9_-]`. */
	id: string;
	/** Markdown. */
	text: string;
	choices: readonly AskChoice[];
}

export interface AskChoice extends Choice {
	/** What a person writes instead where there are no buttons: `approve K7Q2`. */
	reply: string;
}

export interface AccountStatus {
	channel: string;
	account: string;
	/** Known once the adapter was asked. */
	info?: AdapterInfo;
	/** Why the adapter could not be asked. */
	infoError?: string;
	/** Those that were started. */
	processes: Partial<Record<"stream" | "send" | "monitor", ProcessStatus>>;
	/** The platform's rate limit holds the whole account until then. */
	pausedUntil?: number;
	/** Deliveries under way or waiting. */
	deliveries: number;
	restarts: number;
	garbage: number;
	lastError?: string;
}

/** A call to a platform, for people who watch. */
export type PlatformCall = Extract<StreamStatus, { type: "call" }> & { channel: string; account: string; at: number };

export interface Outbound {
	/** Takes over what dead processes owe, and goes on with it (ST19). Call when the runs are recovered. */
	start(): Promise<void>;
	/**
	 * Resolves once the delivery is on record; the same run, account and chat is the same delivery. One that failed or became stale is taken
	 * up again where it stopped, unless it is in doubt what of it is out.
	 */
	deliver(request: DeliverRequest): Promise<DeliveryInfo>;
	/**
	 * The delivery of a run that is about to begin, and the write that puts it on record: it belongs into the unit of the run's begin, so that
	 * neither is there without the other (I7). Nothing happens before `launch`. Throws `not_found` for an account that is not configured.
	 */
	planDelivery(request: RunDelivery): { delivery: NewDelivery; write: Write };
	/** Begins with a delivery that is owed and durable. */
	launch(delivery: NewDelivery): void;
	/**
	 * Puts a question to a chat: with a button for each choice where its platform has them, else with what to reply. Resolves once it is on
	 * record. The same id is asked once in a chat, whatever crashes.
	 */
	ask(request: AskRequest): Promise<DeliveryInfo>;
	/**
	 * Says what came of a question wherever it was asked: in the place of its buttons, or as a message where there are none. Resolves when
	 * all of them were told, or could not be.
	 */
	settleQuestion(id: string, text: string): Promise<void>;
	/** Resolves when the delivery has ended, or this process stops working on it. */
	settled(delivery: string): Promise<DeliveryInfo>;
	deliveries(query: DeliveryQuery): Promise<DeliveryInfo[]>;
	/** Every configured account. */
	accounts(): AccountStatus[];
	/** Calls whenever `accounts` may say something else, but not when time alone changes it; returns how to stop it. */
	onAccounts(listener: () => void): () => void;
	/** How many deliveries of an account are on record, by state. */
	counts(channel: string, account: string): Promise<DeliveryCounts>;
	/** How many deliveries are under way or waiting here. */
	readonly live: number;
	health(channel: string, account: string): Promise<HealthReport>;
	info(channel: string): Promise<AdapterInfo>;
	/**
	 * Takes up another configuration. Accounts that are gone or different are not heard any more once it resolves; their deliveries may end,
	 * then their processes do.
	 */
	reconfigure(adapters: AdapterConfig): Promise<AccountChanges>;
	/** Starts listening to an account; once per account. */
	monitor(channel: string, account: string, onMessage: OnMessage, onChoice?: OnChoice, isUrgent?: IsUrgent): void;
	/** What can be said of a request before its body is read. Throws `not_found`, or `forbidden` when it cannot be signed. */
	admitWebhook(channel: string, account: string, head: Omit<WireWebhookRequest, "body">): void;
	webhook(channel: string, account: string, request: WireWebhookRequest): Promise<WireWebhookAnswer>;
	/** Hands what waits to the Bus, in the tick of the call: for a process that has to end. */
	flush(): void;
	/** Lets deliveries of finished answers end until the deadline; what is left is finished by the next process. */
	stop(deadlineMs: number): Promise<void>;
}
