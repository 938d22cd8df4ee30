/** Rows of the Ledger's tables ⇄ its words. Pure: no statement is run here. */

import type { SQLOutputValue } from "node:sqlite";
import type { ContentPart, EndReason, SignedReasoning, Usage } from "../protocol/protocol.ts";
import type {
	Disposition,
	InboundEvent,
	QueueSettings,
	SessionInfo,
	StoredAttachment,
	StoredMessage,
	StoredPart,
	StoredToolCall,
	Trace,
	Turn,
	TurnStatus,
} from "./port.ts";

export type Row = Record<string, SQLOutputValue>;

/** How much of a message a session is called by. */
const TITLE_CHARS_MAX = 80;

/** The beginning of a message on one line, never ending in half a character. */
export function titleOf(text: string): string {
	const line = text
		.slice(0, TITLE_CHARS_MAX * 4)
		.replace(/\s+/g, " ")
		.trim();
	return line
		.slice(0, TITLE_CHARS_MAX)
		.toWellFormed()
		.replace(/\uFFFD$/, "");
}

export const attachmentsText = (list: readonly StoredAttachment[] | undefined): string | null =>
	list === undefined || list.length === 0 ? null : JSON.stringify(list);

const attachmentsOf = (value: SQLOutputValue | undefined): StoredAttachment[] =>
	typeof value === "string" ? (JSON.parse(value) as StoredAttachment[]) : [];

/** Everything a usage says beyond input and output, as JSON text; null when there is nothing. */
export function usageExtraText(usage: Usage): string | null {
	const { input: _input, output: _output, ...extra } = usage;
	for (const _ in extra) return JSON.stringify(extra);
	return null;
}

export function turnOf(row: Row, messages: Row[], toolCalls: Row[]): Turn {
	const extra = row.usage_extra === null ? {} : (JSON.parse(String(row.usage_extra)) as Record<string, number>);
	const turn: Turn = {
		runId: String(row.run_id),
		session: String(row.session),
		engine: String(row.engine),
		status: String(row.status) as TurnStatus,
		reason: String(row.reason) as EndReason,
		startedAt: Number(row.started_at),
		endedAt: Number(row.ended_at),
		usage: { input: Number(row.usage_input), output: Number(row.usage_output), ...extra },
		messages: messages.map(messageOf),
		toolCalls: toolCalls.map(toolCallOf),
	};
	if (row.error_code !== null) turn.error = { code: String(row.error_code), message: String(row.error_message) };
	if (row.first_token_ms !== null) turn.firstTokenMs = Number(row.first_token_ms);
	if (row.trace !== null) turn.trace = JSON.parse(String(row.trace)) as Trace;
	return turn;
}

function messageOf(row: Row): StoredMessage {
	const message: StoredMessage = { role: row.role === "user" ? "user" : "assistant", text: String(row.text) };
	if (row.message_id !== null) message.messageId = String(row.message_id);
	if (row.event_id !== null) message.eventId = String(row.event_id);
	if (row.parts !== null) message.parts = JSON.parse(String(row.parts)) as StoredPart[];
	if (row.reasoning !== null) message.reasoning = String(row.reasoning);
	if (row.signed_reasoning !== null)
		message.signedReasoning = JSON.parse(String(row.signed_reasoning)) as SignedReasoning[];
	const attachments = attachmentsOf(row.attachments);
	if (attachments.length > 0) message.attachments = attachments;
	return message;
}

function toolCallOf(row: Row): StoredToolCall {
	const call: StoredToolCall = {
		callId: String(row.call_id),
		name: String(row.name),
		status: row.status === "completed" ? "completed" : "failed",
		message: Number(row.message),
		startedAt: Number(row.started_at),
		endedAt: Number(row.ended_at),
	};
	if (row.args !== null) call.args = String(row.args);
	if (row.summary !== null) call.summary = String(row.summary);
	if (row.result !== null) call.result = String(row.result);
	if (row.content !== null) call.content = JSON.parse(String(row.content)) as ContentPart[];
	if (row.after_chars !== null) call.after = Number(row.after_chars);
	return call;
}

export function eventOf(row: Row): InboundEvent {
	const event: InboundEvent = {
		eventId: String(row.event_id),
		session: String(row.session),
		text: String(row.text),
		attachments: attachmentsOf(row.attachments),
		receivedAt: Number(row.received_at),
		disposition: dispositionOf(row),
	};
	if (row.idempotency_key !== null) event.idempotencyKey = String(row.idempotency_key);
	if (row.channel !== null) {
		event.origin = { channel: String(row.channel), account: String(row.account), sender: String(row.sender) };
		if (row.source_id !== null) event.origin.sourceId = String(row.source_id);
		if (row.sender_name !== null) event.origin.senderName = String(row.sender_name);
	}
	if (row.queue !== null) event.queue = JSON.parse(String(row.queue)) as QueueSettings;
	if (row.batch !== null) event.batch = JSON.parse(String(row.batch)) as string[];
	if (row.trace_id !== null) event.traceId = String(row.trace_id);
	if (row.facts !== null) event.facts = JSON.parse(String(row.facts)) as Record<string, unknown>;
	return event;
}

export const jsonOrNull = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** In the order of EVENT_COLUMNS. */
export function eventColumns({ origin, ...event }: InboundEvent) {
	return [
		...[event.eventId, event.session, event.text, attachmentsText(event.attachments), event.idempotencyKey ?? null],
		...[event.receivedAt, ...dispositionColumns(event.disposition)],
		...[origin?.channel ?? null, origin?.account ?? null, origin?.sourceId ?? null],
		...[origin?.sender ?? null, origin?.senderName ?? null],
		...[jsonOrNull(event.queue), jsonOrNull(event.batch), jsonOrNull(event.facts), event.traceId ?? null],
	];
}

export const EVENT_COLUMNS = [
	...["event_id", "session", "text", "attachments", "idempotency_key", "received_at"],
	...["state", "run_id", "because", "superseded_by"],
	...["channel", "account", "source_id", "sender", "sender_name", "queue", "batch", "facts", "trace_id"],
];

function dispositionOf(row: Row): Disposition {
	const because = String(row.because);
	switch (String(row.state) as Disposition["state"]) {
		case "started":
			return { state: "started", runId: String(row.run_id) };
		case "batched":
			return { state: "batched", runId: String(row.run_id) };
		case "superseded": {
			const by = String(row.superseded_by);
			return { state: "superseded", by, ...(row.run_id !== null && { runId: String(row.run_id) }) };
		}
		case "rejected":
			return { state: "rejected", because };
		case "dropped":
			return { state: "dropped", because };
		default:
			return { state: "queued" };
	}
}

/** [state, run_id, because, superseded_by] */
export function dispositionColumns(disposition: Disposition): [string, string | null, string | null, string | null] {
	const { state } = disposition;
	switch (state) {
		case "started":
		case "batched":
			return [state, disposition.runId, null, null];
		case "queued":
			return [state, null, null, null];
		case "superseded":
			return [state, disposition.runId ?? null, null, disposition.by];
		case "rejected":
		case "dropped":
			return [state, null, disposition.because, null];
		default:
			return disposition satisfies never;
	}
}

export const sessionOf = (row: Row): SessionInfo => ({
	session: String(row.session),
	createdAt: Number(row.created_at),
	updatedAt: Number(row.updated_at),
	turns: Number(row.turns),
	title: String(row.title),
});
