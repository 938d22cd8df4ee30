/** The audit log, for those who read it. */

import { NexusError, reasonOf, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus, Cursor } from "../../bus/bus.ts";
import type { NoticeLogs } from "./notices.ts";
import { type Audit, type AuditEntry, type AuditPayload, Flood } from "./port.ts";
import { type AuditRecord, auditRecordOf } from "./record.ts";
import type { NoticeRows } from "./rows.ts";
import { AUDIT_TOPIC } from "./topics.ts";

export interface AuditFilter {
	appId?: string;
	domain?: string;
	operation?: string;
	/** In milliseconds since the epoch: from this time on, and before that one. */
	from?: number;
	to?: number;
}

export interface AuditLogQuery {
	filter: AuditFilter;
	limit: number;
	/** Only events before this one. */
	before?: number;
}

export interface AuditList {
	/** Newest first. */
	records: AuditRecord[];
	/** Where to go on; left out: there are no more. */
	nextBefore?: number;
}

export interface ExportedLog {
	cursor: Cursor;
	/** The last event that was on record at the call (Y9). */
	head: number;
}

export type AuditLog = ReturnType<typeof createAuditLog>;

export interface AuditLogParts {
	bus: Pick<Bus, "write">;
	rows: { notices: NoticeRows };
	notices: NoticeLogs;
	audit: Audit;
	clock: Clock;
	log: Log;
}

const EVENTS_PER_READ = 500;
/** Limit of one list: it skips events that do not match the filter, but not all of the log in one call. */
const EVENTS_LOOKED_AT_MAX = 20_000;
const PATIENCE_MS = 5000;

export function createAuditLog({ bus, rows, notices, audit, clock, log }: AuditLogParts) {
	const refusals = new Flood();
	/** Records an event without making the caller wait. */
	const tell = (entry: AuditEntry) =>
		void bus.write([audit(entry)], PATIENCE_MS).catch((cause: unknown) => {
			log.error({ operation: entry.operation, err: cause }, "an audit event could not be recorded");
		});
	return {
		async list({ filter, limit, before = Number.MAX_SAFE_INTEGER }: AuditLogQuery): Promise<AuditList> {
			const fits = auditMatcher(filter);
			const records: AuditRecord[] = [];
			let place = before;
			for (let looked = 0; looked < EVENTS_LOOKED_AT_MAX; ) {
				const some = await rows.notices.newest(AUDIT_TOPIC, place, EVENTS_PER_READ);
				if (some.length === 0) return { records };
				looked += some.length;
				for (const { sequence, text } of some) {
					place = sequence;
					const record = auditRecordOf(sequence, text);
					if (fits(record)) records.push(record);
					if (records.length === limit) return { records, nextBefore: place };
				}
			}
			return { records, nextBefore: place };
		},
		/** Reads the log after a position, or from the earliest kept event. The export itself is recorded, too. */
		async export(after: number | undefined, caller: string): Promise<ExportedLog> {
			const { last } = await rows.notices.range(AUDIT_TOPIC);
			const cursor = await notices.cursor(AUDIT_TOPIC, after ?? 0);
			const payload = { after: after ?? 0, head: last };
			try {
				await cursor.check();
				await bus.write([audit({ domain: "audit", operation: "exported", caller, payload })], PATIENCE_MS);
			} catch (cause) {
				cursor.close();
				throw cause;
			}
			return { cursor, head: last };
		},
		/** A caller asked for a run to stop. Recorded apart from the run's end, because the run does not wait for it. */
		abortAsked: (runId: string, caller: string) =>
			tell({ domain: "runs", operation: "abort_asked", caller, payload: { run_id: runId } }),
		/** A client's message was not taken: nothing else is on record of it. */
		messageRefused(session: string, cause: unknown): void {
			const told = refusals.next(clock.now());
			if (!told) return;
			const { code, reason = reasonOf(code) } = toNexusError(cause);
			tell({ domain: "messages", operation: "refused", reason, caller: "web", payload: { session, ...told } });
		},
		/** The daemon's own configuration: it began with one, or took up another. */
		configured: (operation: "started" | "accounts_changed", payload: AuditPayload) =>
			tell({ domain: "configuration", operation, payload }),
	};
}

/** Everything fits a filter that asks for nothing. */
export function auditMatcher(filter: AuditFilter): (record: AuditRecord) => boolean {
	const { appId, domain, operation, from, to } = filter;
	if (from !== undefined && to !== undefined && from > to)
		throw new NexusError("invalid", "the time to which events are asked for is before the one from which they are");
	return (record) =>
		(appId === undefined || record.app_id === appId) &&
		(domain === undefined || record.domain === domain) &&
		(operation === undefined || record.operation === operation) &&
		(from === undefined || Date.parse(record.timestamp) >= from) &&
		(to === undefined || Date.parse(record.timestamp) < to);
}

export const isEmptyFilter = (filter: AuditFilter): boolean =>
	Object.values(filter).every((wanted) => wanted === undefined);
