/** The audit log as a file: NDJSON, or CSV for spreadsheets. Pieces end on the borders of records. */

import type { Batch } from "../../bus/bus.ts";
import { type AuditFilter, auditMatcher, isEmptyFilter } from "./log.ts";
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
			const record = auditRecordOf(sequence++, text);
			if (fits(record)) lines += spell(record);
		}
		return lines;
	};
}

/** What a file begins with. One that goes on after a cut has it already. */
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

const ndjsonLine = (record: AuditRecord): string => `${JSON.stringify(record)}\n`;

const COLUMNS = [
	...(["sequence", "timestamp", "domain", "operation", "app_id", "subject_user_id"] as const),
	...(["reason_code", "trace_id", "caller", "payload"] as const),
];

const csvLine = (record: AuditRecord): string => `${COLUMNS.map((column) => cellOf(record[column])).join(",")}\n`;

function cellOf(value: AuditRecord[keyof AuditRecord]): string {
	if (value === undefined) return "";
	return csvCell(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** What begins like a formula would be one in a spreadsheet. */
const FORMULA = /^[=+\-@\t\r]/;
const QUOTED = /[",\r\n]/;

export function csvCell(text: string): string {
	const inert = FORMULA.test(text) ? `'${text}` : text;
	return QUOTED.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}
