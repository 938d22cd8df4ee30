/** The audit log as a file: NDJSON, or CSV for spreadsheets. Pieces end on the borders of records. */

import type { Batch } from "../../bus/bus.ts";
import { type AuditFilter, auditMatcher, isEmptyFilter } from "./audit.ts";
import { type AuditRecord, auditLine, auditRecordOf } from "./record.ts";

export type AuditFormat = "ndjson" | "csv";

export const AUDIT_MIME: Readonly<Record<AuditFormat, string>> = {
	ndjson: "application/x-ndjson",
	csv: "text/csv; charset=utf-8",
};

/** The lines of a batch, each with its line feed; "" when none fits the filter. */
export type AuditSpelling = (batch: Batch) => string;

export function auditSpelling(format: AuditFormat, filter: AuditFilter): AuditSpelling {
	if (format === "ndjson" && isEmptyFilter(filter)) return allLines;
	const fits = auditMatcher(filter);
	const spell = format === "csv" ? csvLine : ndjsonLine;
	return (batch) => {
		let lines = "";
		let sequence = batch.first;
		for (const text of batch.records) {
			// No filter asks for the payload: it is passed on as it is.
			const at = text.indexOf(PAYLOAD);
			const record = auditRecordOf(sequence++, at < 0 ? text : `${text.slice(0, at)}}`);
			if (fits(record)) lines += spell(record, text, at);
		}
		return lines;
	};
}

/** Where the last field begins. Nothing inside of a string looks like it: the quotes there are escaped. */
const PAYLOAD = ',"payload":{';

/** Header line of a file. An export that continues after a cut has it already. */
export const auditHeader = (format: AuditFormat, after: number | undefined): string =>
	format === "csv" && after === undefined ? `${COLUMNS.join(",")}\n` : "";

/** Nothing has to be parsed for an export of everything. */
function allLines({ first, text }: Batch): string {
	let lines = "";
	let sequence = first;
	for (let at = 0; ; sequence++) {
		const end = text.indexOf("\n", at);
		lines += `${auditLine(sequence, end < 0 ? text.slice(at) : text.slice(at, end))}\n`;
		if (end < 0) return lines;
		at = end + 1;
	}
}

const ndjsonLine = ({ sequence }: AuditRecord, text: string): string => `${auditLine(sequence, text)}\n`;

const COLUMNS = [
	...(["sequence", "timestamp", "domain", "operation", "app_id", "subject_user_id"] as const),
	...(["reason_code", "trace_id", "caller", "payload"] as const),
];

/** Sequence, time and reason are the daemon's own words: nothing in them has to be looked at. */
function csvLine({ sequence, timestamp, ...record }: AuditRecord, text: string, payloadAt: number): string {
	const { domain, operation, app_id, subject_user_id, reason_code = "", trace_id, caller } = record;
	const what = `${sequence},${timestamp},${csvCell(domain)},${csvCell(operation)}`;
	const who = `${csvCell(app_id)},${csvCell(subject_user_id)},${reason_code},${csvCell(trace_id)},${csvCell(caller)}`;
	const payload = payloadAt < 0 ? "" : quoted(text.slice(payloadAt + PAYLOAD.length - 1, -1));
	return `${what},${who},${payload}\n`;
}

/** A spreadsheet would run a value that begins like this as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const SPECIAL = /^[=+\-@\t\r]|[",\r\n]/;
const QUOTED = /[",\r\n]/;

export function csvCell(text = ""): string {
	if (!SPECIAL.test(text)) return text;
	const inert = FORMULA.test(text) ? `'${text}` : text;
	return QUOTED.test(inert) ? quoted(inert) : inert;
}

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
