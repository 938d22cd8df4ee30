/** The Ledger in a SQLite file. Each write is one transaction, or part of the one already open: that is how a turn commits with its final frame (I5). */

import type { StatementSync } from "node:sqlite";
import { NexusError } from "../protocol/protocol.ts";
import { migrate, type SqliteFile, sqliteFailure } from "../std/sqlite.ts";
import type { Disposition, Ledger, StoredMessage, Turn } from "./port.ts";
import {
	attachmentsText,
	dispositionColumns,
	EVENT_COLUMNS,
	eventColumns,
	eventOf,
	jsonOrNull,
	type Row,
	sessionOf,
	titleOf,
	turnOf,
	usageExtraText,
} from "./rows.ts";
import { LEDGER_AREA, LEDGER_STEPS } from "./schema.ts";

export function sqliteLedger(file: SqliteFile): Ledger {
	migrate(file, LEDGER_AREA, LEDGER_STEPS);
	return {
		atomically: (work) => file.transaction(work),
		...inboundPart(file),
		...turnPart(file),
		...sessionPart(file),
	};
}

type InboundPart = Pick<
	Ledger,
	"accept" | "dispose" | "event" | "eventByKey" | "eventBySource" | "events" | "queued" | "forgetRejected"
>;

/** What was never taken in does not make or rename a session; neither does an event that only stands for others. */
const isOfSession = ({ state }: Disposition, batch: readonly string[] | undefined): boolean =>
	state !== "rejected" && state !== "dropped" && batch === undefined;

function inboundPart({ db, transaction }: SqliteFile): InboundPart {
	const insert = db.prepare(
		`INSERT INTO inbound (${EVENT_COLUMNS.join(", ")}) VALUES (${EVENT_COLUMNS.map(() => "?").join(", ")})
		ON CONFLICT (session, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
		ON CONFLICT (channel, account, source_id) WHERE source_id IS NOT NULL DO NOTHING`,
	);
	const touchSession = db.prepare(
		`INSERT INTO sessions (session, created_at, updated_at, turns, title) VALUES (?1, ?2, ?2, 0, ?3)
		ON CONFLICT (session) DO UPDATE SET updated_at = max(updated_at, ?2), title = ?3`,
	);
	const update = db.prepare(
		"UPDATE inbound SET state = ?, run_id = ?, because = ?, superseded_by = ? WHERE event_id = ?",
	);
	const byId = db.prepare("SELECT * FROM inbound WHERE event_id = ?");
	const byKey = db.prepare("SELECT * FROM inbound WHERE session = ? AND idempotency_key = ?");
	const bySource = db.prepare("SELECT * FROM inbound WHERE channel = ? AND account = ? AND source_id = ?");
	const queued = db.prepare("SELECT * FROM inbound WHERE state = 'queued' ORDER BY seq");
	const newest = (where: string) =>
		db.prepare(
			`SELECT * FROM inbound WHERE ${where} AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR channel = ?3)
			AND (?4 IS NULL OR seq < (SELECT seq FROM inbound WHERE event_id = ?4)) ORDER BY seq DESC LIMIT ?5`,
		);
	const newestOfAll = newest("?1 IS NULL");
	const newestOfSession = newest("session = ?1");
	const forget = db.prepare(
		`DELETE FROM inbound WHERE state = 'rejected' AND seq <= coalesce(
			(SELECT seq FROM inbound WHERE state = 'rejected' ORDER BY seq DESC LIMIT 1 OFFSET ?), -1)`,
	);
	const one = (statement: StatementSync, ...keys: string[]) => {
		const row = statement.get(...keys);
		return row && eventOf(row);
	};
	return {
		accept: (event) =>
			transaction(() => {
				if (insert.run(...eventColumns(event)).changes === 0) return false;
				if (isOfSession(event.disposition, event.batch))
					touchSession.run(event.session, event.receivedAt, titleOf(event.text));
				return true;
			}),
		dispose(eventId, disposition) {
			const { changes } = transaction(() => update.run(...dispositionColumns(disposition), eventId));
			if (changes === 0) throw new NexusError("not_found", `No inbound event ${eventId} to dispose of.`);
		},
		event: (eventId) => one(byId, eventId),
		eventByKey: (session, key) => one(byKey, session, key),
		eventBySource: (...source) => one(bySource, ...source),
		queued: () => queued.all().map(eventOf),
		forgetRejected: (keep) => transaction(() => Number(forget.run(keep).changes)),
		events({ session = null, state = null, channel = null, before = null, limit }) {
			const statement = session === null ? newestOfAll : newestOfSession;
			return statement.all(session, state, channel, before, limit).map(eventOf);
		},
	};
}

type TurnPart = Pick<Ledger, "settle" | "retrace" | "turn" | "turns">;

function turnPart(file: SqliteFile): TurnPart {
	const { db } = file;
	const messagesOf = db.prepare(
		`SELECT m.role, m.message_id, m.event_id, m.text, m.parts, m.reasoning, m.signed_reasoning, coalesce(m.attachments, i.attachments) AS attachments
		FROM messages m LEFT JOIN inbound i ON i.event_id = m.event_id WHERE m.turn = ? ORDER BY m.ordinal`,
	);
	const toolCallsOf = db.prepare("SELECT * FROM tool_calls WHERE turn = ? ORDER BY ordinal");
	const whole = (row: Row) => turnOf(row, messagesOf.all(Number(row.seq)), toolCallsOf.all(Number(row.seq)));
	const byId = db.prepare("SELECT * FROM turns WHERE run_id = ?");
	const older = db.prepare("SELECT * FROM turns WHERE seq < ? ORDER BY seq DESC LIMIT ?");
	const olderOfSession = db.prepare("SELECT * FROM turns WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?");
	const retrace = db.prepare("UPDATE turns SET trace = ? WHERE run_id = ?");
	return {
		settle: settlement(file),
		retrace(runId, trace) {
			const { changes } = file.transaction(() => retrace.run(JSON.stringify(trace), runId));
			if (changes === 0) throw new NexusError("not_found", `Run ${runId} has not settled.`);
		},
		turn(runId) {
			const row = byId.get(runId);
			return row && whole(row);
		},
		turns({ session, limit, before }) {
			// A run that has not settled is newer than every turn, so an unknown id bounds nothing.
			const bound = Number((before === undefined ? undefined : byId.get(before)?.seq) ?? Number.MAX_SAFE_INTEGER);
			const rows = session === undefined ? older.all(bound, limit) : olderOfSession.all(session, bound, limit);
			return rows.map(whole);
		},
	};
}

/** The one write per settled run. The turn's row goes first: a second settlement fails on it before anything else is touched. */
function settlement({ db, transaction }: SqliteFile): Ledger["settle"] {
	const insertTurn = db.prepare(
		`INSERT INTO turns (run_id, session, engine, status, reason, error_code, error_message, started_at, ended_at,
		first_token_ms, usage_input, usage_output, usage_extra, trace)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const insertMessage = db.prepare("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	const insertToolCall = db.prepare("INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	const countTurn = db.prepare(
		`INSERT INTO sessions (session, created_at, updated_at, turns, title) VALUES (?1, ?2, ?3, 1, ?4)
		ON CONFLICT (session) DO UPDATE SET updated_at = max(updated_at, ?3), turns = turns + 1`,
	);
	const isInbound = db.prepare("SELECT 1 FROM inbound WHERE event_id = ?");
	const addTurn = (turn: Turn) => {
		const { usage, error } = turn;
		const added = insertTurn.run(
			turn.runId,
			turn.session,
			turn.engine,
			turn.status,
			turn.reason,
			error?.code ?? null,
			error?.message ?? null,
			turn.startedAt,
			turn.endedAt,
			turn.firstTokenMs ?? null,
			usage.input,
			usage.output,
			usageExtraText(usage),
			turn.trace === undefined ? null : JSON.stringify(turn.trace),
		);
		return added.lastInsertRowid;
	};
	const attachmentsFor = ({ attachments, eventId }: StoredMessage) => {
		if (attachments === undefined || attachments.length === 0) return null;
		return eventId !== undefined && isInbound.get(eventId) ? null : attachmentsText(attachments);
	};
	const write = (turn: Turn) => {
		const seq = addTurn(turn);
		turn.messages.forEach((m, n) => {
			const beside = [jsonOrNull(m.parts), m.reasoning ?? null, jsonOrNull(m.signedReasoning)] as const;
			insertMessage.run(seq, n, m.role, m.messageId ?? null, m.eventId ?? null, m.text, attachmentsFor(m), ...beside);
		});
		turn.toolCalls.forEach((c, n) => {
			const outcome = [c.args ?? null, c.status, c.summary ?? null, c.result ?? null] as const;
			const replayed = [jsonOrNull(c.content), c.after ?? null] as const;
			insertToolCall.run(seq, n, c.callId, c.name, ...outcome, c.message, c.startedAt, c.endedAt, ...replayed);
		});
		const asked = turn.messages.findLast((message) => message.role === "user");
		countTurn.run(turn.session, turn.startedAt, turn.endedAt, titleOf(asked?.text ?? ""));
	};
	return (turn) => {
		try {
			transaction(() => write(turn));
		} catch (cause) {
			if (sqliteFailure(cause)?.kind !== "duplicate") throw cause;
			throw new NexusError("conflict", `Run ${turn.runId} is already settled.`, { cause });
		}
	};
}

function sessionPart({ db }: SqliteFile): Pick<Ledger, "sessions" | "session"> {
	const recent = db.prepare(`SELECT * FROM sessions WHERE updated_at < ?1 AND updated_at >= coalesce(
		(SELECT updated_at FROM sessions WHERE updated_at < ?1 ORDER BY updated_at DESC LIMIT 1 OFFSET ?2 - 1), 0)
		ORDER BY updated_at DESC, session`);
	const byLabel = db.prepare("SELECT * FROM sessions WHERE session = ?");
	return {
		sessions: ({ limit, before = Number.MAX_SAFE_INTEGER }) => recent.all(before, limit).map(sessionOf),
		session(label) {
			const row = byLabel.get(label);
			return row && sessionOf(row);
		},
	};
}
