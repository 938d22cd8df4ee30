/** How an audit event is kept: one line of JSON as it is exported, but for the place, which is known only when it is on record. */

import type { Reason } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { clipped } from "./events.ts";
import type { Audit, AuditEntry, AuditPayload } from "./port.ts";
import { noticeWrites } from "./rows.ts";
import { AUDIT_TOPIC } from "./topics.ts";

/** The fields of an export, in this order. */
export interface AuditRecord {
	sequence: number;
	/** RFC 3339, UTC. */
	timestamp: string;
	domain: string;
	operation: string;
	app_id?: string;
	subject_user_id?: string;
	reason_code?: Reason;
	trace_id?: string;
	caller?: string;
	payload?: AuditPayload;
}

/** Longer texts are cut, because records hold only ids and names. */
const VALUE_BYTES_MAX = 256;

export function auditText(entry: AuditEntry, at: number): string {
	const { domain, operation, appId, userId, reason, traceId, caller, payload } = entry;
	const text = (value: string | undefined) => (value === undefined ? undefined : clipped(value, VALUE_BYTES_MAX));
	return JSON.stringify({
		timestamp: timestampOf(at),
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

/** The same object when nothing in it is too long: every message makes some of them. */
function clippedPayload(payload: AuditPayload): AuditPayload {
	let copy: Record<string, AuditPayload[string]> | undefined;
	for (const [name, value] of Object.entries(payload)) {
		if (typeof value !== "string") continue;
		const short = clipped(value, VALUE_BYTES_MAX);
		if (short === value) continue;
		copy ??= { ...payload };
		copy[name] = short;
	}
	return copy ?? payload;
}

let spelled = { at: 0, text: "1970-01-01T00:00:00.000Z" };

/** Many events of one millisecond follow each other. */
function timestampOf(at: number): string {
	if (at !== spelled.at) spelled = { at, text: new Date(at).toISOString() };
	return spelled.text;
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
