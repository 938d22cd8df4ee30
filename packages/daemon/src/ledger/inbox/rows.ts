/** Rows of the inbox ⇄ events. Pure: no statement is run here. */

import type { SQLOutputValue } from "node:sqlite";
import { jsonOrNull, jsonText, type Row } from "../table.ts";
import type { Disposition, InboundEvent, QueueSettings, StoredAttachment } from "./port.ts";

export const attachmentsText = (list: readonly StoredAttachment[] | undefined): string | null =>
	list === undefined || list.length === 0 ? null : jsonText(list);

export const attachmentsOf = (value: SQLOutputValue | undefined): StoredAttachment[] =>
	typeof value === "string" ? (JSON.parse(value) as StoredAttachment[]) : [];

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

export function authorOf(row: Row): Pick<InboundEvent, "eventId" | "origin" | "facts"> {
	const origin = { channel: String(row.channel), account: String(row.account), sender: String(row.sender) };
	const name = row.sender_name === null ? {} : { senderName: String(row.sender_name) };
	return {
		eventId: String(row.event_id),
		origin: row.channel === null ? undefined : { ...origin, ...name },
		facts: row.facts === null ? undefined : (JSON.parse(String(row.facts)) as Record<string, unknown>),
	};
}

/** In the order of EVENT_COLUMNS. */
export function eventColumns(event: InboundEvent): (string | number | null)[] {
	const { origin } = event;
	const [state, runId, because, supersededBy] = dispositionColumns(event.disposition);
	return [
		event.eventId,
		event.session,
		event.text,
		attachmentsText(event.attachments),
		event.idempotencyKey ?? null,
		event.receivedAt,
		state,
		runId,
		because,
		supersededBy,
		origin?.channel ?? null,
		origin?.account ?? null,
		origin?.sourceId ?? null,
		origin?.sender ?? null,
		origin?.senderName ?? null,
		jsonOrNull(event.queue),
		jsonOrNull(event.batch),
		jsonOrNull(event.facts),
		event.traceId ?? null,
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
		case "injected":
			return { state: "injected", runId: String(row.run_id) };
		case "cancelled":
			return { state: "cancelled" };
		case "handled":
			return { state: "handled", because };
		case "superseded": {
			const by = String(row.superseded_by);
			return { state: "superseded", by, ...(row.run_id !== null && { runId: String(row.run_id) }) };
		}
		case "rejected":
			return { state: "rejected", because };
		case "dropped":
			return { state: "dropped", because };
		case "answered":
			return { state: "answered", because };
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
		case "injected":
			return [state, disposition.runId, null, null];
		case "queued":
		case "cancelled":
			return [state, null, null, null];
		case "superseded":
			return [state, disposition.runId ?? null, null, disposition.by];
		case "rejected":
		case "dropped":
		case "handled":
		case "answered":
			return [state, null, disposition.because, null];
		default:
			return disposition satisfies never;
	}
}
