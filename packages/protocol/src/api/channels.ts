/** The JSON of the HTTP API about chat platforms: accounts, deliveries, pairings, the lab. */

/**
 * `unknown`: it cannot be found out whether a message exists. `stale`: too old to be finished after a restart. `damaged`: the stored answer
 * is damaged, and only its intact part was sent.
 */
export type DeliveryState = "active" | "complete" | "failed" | "unknown" | "stale" | "damaged";
export type DeliveryMode = "stream" | "blocks" | "whole";

export interface ProcessJson {
	/** `unreachable`: it runs, and its platform does not answer. */
	state: "starting" | "running" | "unreachable" | "backing_off" | "open_circuit" | "stopped";
	pid?: number;
	restarts: number;
	/** When it is tried again. */
	until?: number;
	last_error?: string;
}

export interface AccountJson {
	channel: string;
	account: string;
	/** It belongs to the channel lab: a fake platform, without real readers. */
	lab?: true;
	processes: { monitor?: ProcessJson; stream?: ProcessJson; send?: ProcessJson };
	/** The platform's rate limit holds the whole account. */
	rate: { blocked_until?: number };
	/** Lines of the adapter that were not understood. */
	garbage_lines: number;
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

export interface AccountNameJson {
	channel: string;
	account: string;
}

export interface AccountChangesJson {
	added: AccountNameJson[];
	changed: AccountNameJson[];
	/** Not listened to any more; answers on their way are given a minute. */
	removed: AccountNameJson[];
}

export interface AccountHealthJson {
	ok: boolean;
	detail: string;
}

/** One message on the platform. Positions count characters of the answer's text. */
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

/** The platform's address; more fields are its own. */
export interface TargetJson {
	to: string;
	[field: string]: unknown;
}

export interface DeliveryJson {
	delivery_id: string;
	run_id: string;
	channel: string;
	account: string;
	lab?: true;
	target: TargetJson;
	/** Decided when it begins. */
	mode?: DeliveryMode;
	state: DeliveryState;
	/** Everything before this position of the answer's text is in finished messages. */
	position: number;
	messages: SentMessageJson[];
	error?: string;
	created_at: number;
	updated_at: number;
}

export interface DeliveryListJson {
	deliveries: DeliveryJson[];
}

export interface DeliveryDestination extends AccountNameJson {
	target: TargetJson;
	/** Sent when it is finished. */
	disable_streaming?: boolean;
	/** Shows tool status while it is written; else as the channel's config says. */
	tools?: boolean;
	/** Shows the reasoning, quoted; else as the channel's config says. */
	reasoning?: boolean;
}

export type DeliveryRequest =
	| ({ run_id: string } & DeliveryDestination)
	| ({ text: string; idempotency_key?: string } & DeliveryDestination);

export interface DeliveryAccepted {
	delivery_id: string;
	run_id?: string;
}

export interface PairingJson {
	code: string;
	channel: string;
	account: string;
	sender: string;
	sender_name?: string;
	requested_at: number;
	expires_at: number;
	approved_at?: number;
}

export interface PairingListJson {
	pairings: PairingJson[];
}

export interface PairingRemovedJson {
	removed: true;
}

export interface LabRequest {
	text: string;
	channels?: string[];
}

export interface LabAccepted {
	lab_id: string;
	run_id: string;
	session: string;
	channels: { channel: string; delivery_id: string }[];
}

export interface RangeJson {
	type: string;
	offset: number;
	length: number;
	url?: string;
}

/** A message as a fake platform shows it. */
export interface LabMessageJson {
	id: string;
	text: string;
	/** How the text is to be read: as it is, as markdown, with `*marks*`, or with the given ranges. */
	style: "plain" | "markdown" | "marks" | "ranges";
	ranges?: RangeJson[];
	/** Names of what is attached. */
	files?: string[];
	/** Labels of its buttons. */
	buttons?: string[];
	created_at: number;
	updated_at: number;
	/** How often it was seen to change. */
	edits: number;
}

export interface LabCallJson {
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
	/** The newest ones. */
	calls: LabCallJson[];
	calls_total: number;
	rate_limited_until?: number;
}

export interface LabStateJson {
	/** By the daemon's clock. */
	now: number;
	run_id?: string;
	/** A question waits to be decided, or something of it is on its way. */
	question_open: boolean;
	channels: LabChannelJson[];
}

export type LabFaultKind = "429" | "5xx" | "hang" | "reset_after_accept";

export interface LabFaultRequest {
	channel: string;
	kind: LabFaultKind;
	/** How many calls; 1 when left out. */
	count?: number;
}

export interface LabFaultSet {
	set: true;
}

export interface LabAsked {
	question_id: string;
}

export interface LabPressRequest {
	channel: string;
	/** A message's id in the lab's state. */
	message: string;
	label: string;
}

export interface LabPressed {
	pressed: true;
}
