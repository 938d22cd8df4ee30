/** Turns in a SQLite file. */

import {
	type ContentPart,
	type EndReason,
	Refused,
	type SignedReasoning,
	type Usage,
	type UsageShare,
} from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { attachmentsOf, attachmentsText } from "../inbox/sqlite.ts";
import { sessionUse } from "../sessions/sqlite.ts";
import { type AtOnce, jsonOrNull, jsonText, must, type Row, type SqliteTable, statement } from "../table.ts";
import type { StoredMessage, StoredPart, StoredToolCall, Trace, Turn, TurnOps, TurnStatus, Turns } from "./port.ts";

export const turnsInSqlite: SqliteTable<AtOnce<Turns>> = {
	area: "turns",
	/** The area `ledger` made the tables. */
	listedBy: { table: "turns", id: "run_id" },
	steps: [
		`-- JSON.
		ALTER TABLE messages ADD COLUMN signed_reasoning TEXT;
		ALTER TABLE tool_calls ADD COLUMN content TEXT;
		ALTER TABLE tool_calls ADD COLUMN after_chars INTEGER;`,
		`ALTER TABLE messages ADD COLUMN agent TEXT;
		ALTER TABLE messages ADD COLUMN hidden INTEGER;
		ALTER TABLE tool_calls ADD COLUMN agent TEXT;
		-- JSON.
		ALTER TABLE turns ADD COLUMN usage_by TEXT;`,
		`-- Run ids.
		ALTER TABLE turns ADD COLUMN continues TEXT;
		ALTER TABLE turns ADD COLUMN continued_by TEXT;
		-- How often a turn was changed after it had settled.
		ALTER TABLE sessions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;`,
		"ALTER TABLE turns ADD COLUMN rolled_back INTEGER;",
		"CREATE INDEX turns_by_begin ON turns (session, run_id);",
	],
	open(file) {
		file.tables.register<TurnOps>("turns", applier(file));
		return reads(file);
	},
};

function reads(file: SqliteFile): AtOnce<Turns> {
	const messagesOf = statement(
		file,
		`SELECT m.role, m.message_id, m.event_id, m.text, m.parts, m.reasoning, m.signed_reasoning, m.agent, m.hidden, coalesce(m.attachments, i.attachments) AS attachments
		FROM messages m LEFT JOIN inbound i ON i.event_id = m.event_id WHERE m.turn = ? ORDER BY m.ordinal`,
	);
	const toolCallsOf = statement(file, "SELECT * FROM tool_calls WHERE turn = ? ORDER BY ordinal");
	const whole = (row: Row) => turnOf(row, messagesOf.all(Number(row.seq)), toolCallsOf.all(Number(row.seq)));
	const byId = statement(file, "SELECT * FROM turns WHERE run_id = ?");
	const older = statement(file, "SELECT * FROM turns WHERE seq < ? ORDER BY seq DESC LIMIT ?");
	const olderOfSession = statement(file, "SELECT * FROM turns WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?");
	const begun = (where: string) =>
		statement(file, `SELECT * FROM turns WHERE ${where} AND (?2 IS NULL OR run_id < ?2) ORDER BY run_id DESC LIMIT ?3`);
	const begunOfAll = begun("?1 IS NULL");
	const begunOfSession = begun("session = ?1");
	const newest = statement(file, "SELECT run_id FROM turns WHERE session = ? ORDER BY seq DESC LIMIT 1");
	return {
		newest(session) {
			const row = newest.get(session);
			return row && String(row.run_id);
		},
		get(runId) {
			const row = byId.get(runId);
			return row && whole(row);
		},
		list({ session, limit, before }) {
			// A run that has not settled is newer than every turn, so an unknown id bounds nothing.
			const bound = Number((before === undefined ? undefined : byId.get(before)?.seq) ?? Number.MAX_SAFE_INTEGER);
			const rows = session === undefined ? older.all(bound, limit) : olderOfSession.all(session, bound, limit);
			return rows.map(whole);
		},
		begun({ session = null, limit, before = null }) {
			const found = session === null ? begunOfAll : begunOfSession;
			return found.all(session, before, limit).map(whole);
		},
	};
}

function applier(file: SqliteFile): ApplierOf<TurnOps> {
	const addTurn = turnRow(file);
	const addMessage = messageRow(file);
	const addToolCall = toolCallRow(file);
	const session = sessionUse(file);
	const continued = statement(
		file,
		`UPDATE turns SET continued_by = ? WHERE run_id = ? AND continued_by IS NULL AND status <> 'completed'
		AND NOT EXISTS (SELECT 1 FROM turns newer WHERE newer.session = turns.session AND newer.seq > turns.seq)`,
	);
	const retrace = statement(file, "UPDATE turns SET trace = ? WHERE run_id = ?");
	const rollBack = statement(file, "UPDATE turns SET rolled_back = 1 WHERE run_id = ?");
	return {
		settle(_, turn) {
			const seq = addTurn(turn);
			for (const [n, message] of turn.messages.entries()) addMessage(seq, n, message);
			for (const [n, call] of turn.toolCalls.entries()) addToolCall(seq, n, call);
			const asked = turn.messages.find((message) => message.role === "user");
			session.settled(turn.session, turn.startedAt, turn.endedAt, asked?.text ?? "");
		},
		rollBack(_, runId) {
			must(rollBack.run(runId), `Run ${runId} has not settled.`);
			session.changed(runId);
		},
		continued(_, runId, by) {
			must(continued.run(by, runId), `Run ${runId} cannot be continued any more.`);
			session.changed(runId);
		},
		retrace: (_, runId, trace) => must(retrace.run(jsonText(trace), runId), `Run ${runId} has not settled.`),
	};
}

/** Inserts the row of a turn and tells its number. */
function turnRow(file: SqliteFile) {
	const insert = statement(
		file,
		`INSERT INTO turns (run_id, session, engine, status, reason, error_code, error_message, started_at, ended_at,
		first_token_ms, usage_input, usage_output, usage_extra, usage_by, trace, continues)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING`,
	);
	return (turn: Turn): number => {
		const { usage, error } = turn;
		const seq = insert.insert(
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
			jsonOrNull(turn.usageBy),
			jsonOrNull(turn.trace),
			turn.continues ?? null,
		);
		if (seq === undefined) throw new Refused("duplicate", `Run ${turn.runId} is already settled.`);
		return seq;
	};
}

function messageRow(file: SqliteFile) {
	const insert = statement(
		file,
		`INSERT INTO messages (turn, ordinal, role, message_id, event_id, text, attachments, parts, reasoning,
		signed_reasoning, agent, hidden) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const isInbound = statement(file, "SELECT 1 FROM inbound WHERE event_id = ?");
	const attachmentsFor = ({ attachments, eventId }: StoredMessage) => {
		if (attachments === undefined || attachments.length === 0) return null;
		return eventId !== undefined && isInbound.get(eventId) ? null : attachmentsText(attachments);
	};
	return (turn: number, ordinal: number, message: StoredMessage): void => {
		const { role, messageId = null, eventId = null, text, parts, reasoning = null, signedReasoning } = message;
		const beside = [attachmentsFor(message), jsonOrNull(parts), reasoning, jsonOrNull(signedReasoning)];
		const speaker = [message.agent ?? null, message.visible === false ? 1 : null];
		insert.run(turn, ordinal, role, messageId, eventId, text, ...beside, ...speaker);
	};
}

function toolCallRow(file: SqliteFile) {
	const insert = statement(
		file,
		`INSERT INTO tool_calls (turn, ordinal, call_id, name, args, status, summary, result, message, started_at, ended_at,
		content, after_chars, agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	return (turn: number, ordinal: number, call: StoredToolCall): void => {
		const { args = null, status, summary = null, result = null, message, startedAt, endedAt } = call;
		const outcome = [args, status, summary, result, message, startedAt, endedAt];
		insert.run(
			turn,
			ordinal,
			call.callId,
			call.name,
			...outcome,
			...[jsonOrNull(call.content), call.after ?? null, call.agent ?? null],
		);
	};
}

/** Everything a usage says beyond input and output, as JSON text; null when there is nothing. */
function usageExtraText(usage: Usage): string | null {
	const { input: _input, output: _output, ...extra } = usage;
	for (const _ in extra) return jsonText(extra);
	return null;
}

function turnOf(row: Row, messages: Row[], toolCalls: Row[]): Turn {
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
	if (row.rolled_back === 1) turn.rolledBack = true;
	if (row.usage_by !== null) turn.usageBy = JSON.parse(String(row.usage_by)) as UsageShare[];
	if (row.continues !== null) turn.continues = String(row.continues);
	if (row.continued_by !== null) turn.continuedBy = String(row.continued_by);
	if (row.trace !== null) turn.trace = JSON.parse(String(row.trace)) as Trace;
	return turn;
}

function messageOf(row: Row): StoredMessage {
	const message: StoredMessage = { role: row.role === "user" ? "user" : "assistant", text: String(row.text) };
	if (row.message_id !== null) message.messageId = String(row.message_id);
	if (row.agent !== null) message.agent = String(row.agent);
	if (row.hidden === 1) message.visible = false;
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
	if (row.agent !== null) call.agent = String(row.agent);
	if (row.args !== null) call.args = String(row.args);
	if (row.summary !== null) call.summary = String(row.summary);
	if (row.result !== null) call.result = String(row.result);
	if (row.content !== null) call.content = JSON.parse(String(row.content)) as ContentPart[];
	if (row.after_chars !== null) call.after = Number(row.after_chars);
	return call;
}
