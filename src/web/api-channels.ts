/** What the daemon's API says about chat platforms, as the page uses it. */

/** What became of a message. */
export type Disposition = "started" | "queued" | "batched" | "superseded" | "rejected" | "dropped";

export interface EventRow {
	event_id: string;
	session: string;
	text: string;
	received_at: number;
	disposition: Disposition;
	run_id?: string;
	because?: string;
	superseded_by?: string;
	/** A synthetic event: the original events it stands for. */
	batch?: string[];
	channel?: string;
	account?: string;
	sender?: string;
	sender_name?: string;
}

export interface TraceRow {
	channel: string;
	account: string;
	sender: string;
	stages: { stage: string; at: number; ms: number }[];
	hooks: { plugin: string; hook: string; ms: number; outcome: string; detail?: string }[];
	deliveries: string[];
}

export interface ProcessRow {
	state: "starting" | "running" | "unreachable" | "backing_off" | "open_circuit" | "stopped";
	pid?: number;
	restarts: number;
	/** When it is tried again. */
	until?: number;
	last_error?: string;
}

export type DeliveryState = "active" | "complete" | "failed" | "unknown" | "stale" | "damaged";

export interface AccountRow {
	channel: string;
	account: string;
	/** It belongs to the channel lab: nobody real reads there. */
	lab?: true;
	processes: { monitor?: ProcessRow; stream?: ProcessRow; send?: ProcessRow };
	rate: { blocked_until?: number };
	garbage_lines: number;
	deliveries: Record<DeliveryState, number>;
	last_error?: string;
}

export type DeliveryMode = "stream" | "blocks" | "whole";

export interface SentMessageRow {
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

export interface DeliveryRow {
	delivery_id: string;
	run_id: string;
	channel: string;
	account: string;
	lab?: true;
	target: { to: string };
	mode?: DeliveryMode;
	state: DeliveryState;
	/** Everything before this position of the answer's text is in finished messages. */
	position: number;
	messages: SentMessageRow[];
	error?: string;
	created_at: number;
	updated_at: number;
}

export interface PairingRow {
	code: string;
	channel: string;
	account: string;
	sender: string;
	sender_name?: string;
	requested_at: number;
	expires_at: number;
	approved_at?: number;
}

export interface RangeRow {
	type: string;
	offset: number;
	length: number;
	url?: string;
}

export interface LabMessageRow {
	id: string;
	text: string;
	/** How the text is to be read: as it is, as markdown, with `*marks*`, or with the given ranges. */
	style: "plain" | "markdown" | "marks" | "ranges";
	ranges?: RangeRow[];
	/** Names of what is attached. */
	files?: string[];
	created_at: number;
	updated_at: number;
	edits: number;
}

export interface LabCallRow {
	at: number;
	call: string;
	ms?: number;
	/** 0 = no answer. */
	status: number;
}

export interface LabChannelRow {
	channel: string;
	/** Its adapter has been started. */
	ready: boolean;
	mode?: DeliveryMode;
	state?: DeliveryState;
	position?: number;
	delivery?: DeliveryRow;
	messages: LabMessageRow[];
	/** A preview below the messages. */
	draft?: LabMessageRow;
	typing: boolean;
	/** The newest ones. */
	calls: LabCallRow[];
	calls_total: number;
	rate_limited_until?: number;
}

export interface LabStateRow {
	/** By the daemon's clock. */
	now: number;
	run_id?: string;
	channels: LabChannelRow[];
}

export type FaultKind = "429" | "5xx" | "hang" | "reset_after_accept";
