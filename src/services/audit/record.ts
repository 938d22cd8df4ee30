/** How an audit event is kept: one line of JSON as it is exported, but for the place, which is known only when it is on record. */

import { noticeWrites } from "../../ledger/ledger.ts";
import type { AuditEventJson } from "../../protocol/protocol.ts";
import type { Clock } from "../../std/clock.ts";
import { AUDIT_TOPIC } from "../notices/topics.ts";
import { clipped } from "./clip.ts";
import type { Audit, AuditEntry, AuditPayload } from "./port.ts";

/** The fields of an export, in this order. */
export type AuditRecord = AuditEventJson;

/** Longer texts are cut: what is told has ids and names only. */
const VALUE_BYTES_MAX = 256;

export function auditText(entry: AuditEntry, at: number): string {
	const { domain, operation, appId, userId, reason, traceId, caller, payload } = entry;
	const text = (value: string | undefined) => (value === undefined ? undefined : clipped(value, VALUE_BYTES_MAX));
	return JSON.stringify({
		timestamp: new Date(at).toISOString(),
		domain,
		operation,
		app_id: text(appId),
		subject_user_id: text(userId),
		reason_code: reason === "UNSPECIFIED" ? undefined : reason,
		trace_id: text(traceId),
		caller: text(caller),
		payload: payload && clippedPayload(payload),
	} satisfies { [Field in keyof Omit<AuditRecord, "sequence">]: AuditRecord[Field] | undefined });
}

function clippedPayload(payload: AuditPayload): AuditPayload {
	const clip = (value: string | number | boolean) =>
		typeof value === "string" ? clipped(value, VALUE_BYTES_MAX) : value;
	return Object.fromEntries(Object.entries(payload).map(([name, value]) => [name, clip(value)]));
}

/** The line as it is exported. */
export const auditLine = (sequence: number, text: string): string => `{"sequence":${sequence},${text.slice(1)}`;

export const auditRecordOf = (sequence: number, text: string): AuditRecord =>
	JSON.parse(auditLine(sequence, text)) as AuditRecord;

export const createAudit =
	(clock: Clock): Audit =>
	(entry) => {
		const at = clock.now();
		return noticeWrites.post(AUDIT_TOPIC, auditText(entry, at), at);
	};
