/** Turns in SQL. */

import type { Usage } from "@nexus-stream/protocol";
import { Columns, insertInto, json, listed, mark, number, text } from "../../std/sql/columns.ts";
import { jsonText, must, type Row, type SqlReader, type SqlTable, type Step, type StepsOf } from "../../std/sql/sql.ts";
import { type Reading, whenAllRead, whenRead } from "../../std/write.ts";
import { sessionUse } from "../sessions/sql.ts";
import type { StoredMessage, StoredToolCall, Turn, TurnOps, Turns } from "./port.ts";

const TURN = new Columns<Omit<Turn, "error" | "usage" | "messages" | "toolCalls">>({
	runId: text("run_id"),
	session: text("session"),
	engine: text("engine"),
	status: text("status"),
	reason: text("reason"),
	startedAt: number("started_at"),
	endedAt: number("ended_at"),
	firstTokenMs: number("first_token_ms"),
	usageBy: json("usage_by"),
	trace: json("trace"),
	continues: text("continues"),
	continuedBy: text("continued_by"),
	rolledBack: mark("rolled_back", true),
});

const ERROR = new Columns<NonNullable<Turn["error"]>>({ code: text("error_code"), message: text("error_message") });

/** `extra` is what a usage says beyond input and output. */
const USAGE = new Columns<{ input: number; output: number; extra?: Partial<Usage> }>({
	input: number("usage_input"),
	output: number("usage_output"),
	extra: json("usage_extra"),
});

const MESSAGE = new Columns<StoredMessage>({
	role: text("role"),
	messageId: text("message_id"),
	eventId: text("event_id"),
	text: text("text"),
	attachments: listed("attachments"),
	parts: json("parts"),
	reasoning: text("reasoning"),
	signedReasoning: json("signed_reasoning"),
	agent: text("agent"),
	visible: mark("hidden", false),
});

const CALL = new Columns<StoredToolCall>({
	callId: text("call_id"),
	name: text("name"),
	args: text("args"),
	status: text("status"),
	summary: text("summary"),
	result: text("result"),
	message: number("message"),
	startedAt: number("started_at"),
	endedAt: number("ended_at"),
	content: json("content"),
	after: number("after_chars"),
	agent: text("agent"),
});

/** A row of a turn, which its run names: the turn itself is inserted just before. */
const insertOfTurn = (table: string, names: readonly string[], values: readonly string[]) =>
	`INSERT INTO ${table} (turn, ordinal, ${names.join(", ")})
	VALUES ((SELECT seq FROM turns WHERE run_id = ?1), ?2, ${values.join(", ")})`;

const marksOf = (names: readonly string[]) => names.map((_, n) => `?${n + 3}`);

/** Attachments that the inbound event has are not stored once more. */
const MESSAGE_MARKS = marksOf(MESSAGE.names).map((value, n) =>
	MESSAGE.names[n] === "attachments"
		? `CASE WHEN EXISTS (SELECT 1 FROM inbound WHERE event_id = ?${MESSAGE.names.length + 3}) THEN NULL ELSE ${value} END`
		: value,
);

const SQL = {
	addTurn: `${insertInto("turns", TURN, ERROR, USAGE)} ON CONFLICT (run_id) DO NOTHING`,
	addMessage: insertOfTurn("messages", MESSAGE.names, MESSAGE_MARKS),
	addCall: insertOfTurn("tool_calls", CALL.names, marksOf(CALL.names)),
	continued: `UPDATE turns SET continued_by = ? WHERE run_id = ? AND continued_by IS NULL AND status <> 'completed'
		AND NOT EXISTS (SELECT 1 FROM turns AS newer WHERE newer.session = turns.session AND newer.seq > turns.seq)`,
	retrace: "UPDATE turns SET trace = ? WHERE run_id = ?",
	rollBack: "UPDATE turns SET rolled_back = 1 WHERE run_id = ?",
};

const ops: StepsOf<TurnOps> = {
	settle(_, turn) {
		const { runId } = turn;
		const values = [...TURN.values(turn), ...ERROR.values(turn.error), ...USAGE.values(usageColumns(turn.usage))];
		const steps = [must(SQL.addTurn, values, `Run ${runId} is already settled.`, "duplicate")];
		for (const [n, message] of turn.messages.entries()) steps.push(messageStep(runId, n, message));
		for (const [n, call] of turn.toolCalls.entries())
			steps.push({ sql: SQL.addCall, values: CALL.values(call, runId, n) });
		const asked = turn.messages.find((message) => message.role === "user");
		steps.push(sessionUse.settled(turn.session, turn.startedAt, turn.endedAt, asked?.text ?? ""));
		return steps;
	},
	rollBack: (_, runId) => [must(SQL.rollBack, [runId], `Run ${runId} has not settled.`), sessionUse.changed(runId)],
	continued: (_, runId, by) => [
		must(SQL.continued, [by, runId], `Run ${runId} cannot be continued any more.`),
		sessionUse.changed(runId),
	],
	retrace: (_, runId, trace) => [must(SQL.retrace, [jsonText(trace), runId], `Run ${runId} has not settled.`)],
};

function usageColumns({ input, output, ...extra }: Usage) {
	for (const _ in extra) return { input, output, extra };
	return { input, output };
}

function messageStep(runId: string, ordinal: number, message: StoredMessage): Step {
	const values = MESSAGE.values(message, runId, ordinal);
	values.push(message.attachments?.length ? (message.eventId ?? null) : null);
	return { sql: SQL.addMessage, values };
}

export const turnsTable: SqlTable<Turns> = {
	name: "turns",
	/** The area `ledger` made the tables. */
	schema: [
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
	listedBy: { table: "turns", id: "run_id" },
	sql: SQL,
	ops,
	reads(db) {
		const whole = withContents(db);
		const same = (row: Row) => row;
		const byId = db.all("SELECT * FROM turns WHERE run_id = ?", same);
		// A run that has not settled is newer than every turn, so an unknown id bounds nothing.
		const older = (where: string) =>
			db.all(
				`SELECT * FROM turns WHERE ${where} AND seq < coalesce((SELECT seq FROM turns WHERE run_id = ?2), 9007199254740991)
				ORDER BY seq DESC LIMIT ?3`,
				same,
			);
		const begun = (where: string) =>
			db.all(
				`SELECT * FROM turns WHERE ${where} AND (CAST(?2 AS TEXT) IS NULL OR run_id < ?2) ORDER BY run_id DESC LIMIT ?3`,
				same,
			);
		const [ofAll, ofSession] = ["CAST(?1 AS TEXT) IS NULL", "session = ?1"];
		const [olderOfAll, olderOfSession] = [older(ofAll), older(ofSession)];
		const [begunOfAll, begunOfSession] = [begun(ofAll), begun(ofSession)];
		return {
			newest: db.get("SELECT run_id FROM turns WHERE session = ? ORDER BY seq DESC LIMIT 1", (row) =>
				String(row.run_id),
			),
			get: (runId) => whenRead(whole(byId(runId)), ([turn]) => turn),
			list: ({ session = null, limit, before = null }) =>
				whole((session === null ? olderOfAll : olderOfSession)(session, before, limit)),
			begun: ({ session = null, limit, before = null }) =>
				whole((session === null ? begunOfAll : begunOfSession)(session, before, limit)),
		};
	},
};

/** Completes the rows of turns with what was said and called in them: two statements, however many turns. */
function withContents(db: SqlReader) {
	const ofTurn =
		<T>(of: (row: Row) => T) =>
		(row: Row) =>
			[Number(row.turn), of(row)] as const;
	const contents = (turns: string) => ({
		messages: db.all(
			`SELECT m.turn, m.role, m.message_id, m.event_id, m.text, m.parts, m.reasoning, m.signed_reasoning, m.agent, m.hidden,
			coalesce(m.attachments, i.attachments) AS attachments FROM messages AS m
			LEFT JOIN inbound AS i ON i.event_id = m.event_id WHERE m.turn ${turns} ORDER BY m.turn, m.ordinal`,
			ofTurn(MESSAGE.of),
		),
		calls: db.all(`SELECT * FROM tool_calls WHERE turn ${turns} ORDER BY turn, ordinal`, ofTurn(CALL.of)),
	});
	const ofOne = contents("= (SELECT seq FROM turns WHERE run_id = ?)");
	const ofSeveral = contents("IN (SELECT seq FROM turns WHERE run_id IN listOf(?))");
	return (found: Reading<Row[]>): Reading<Turn[]> =>
		whenRead(found, (rows) => {
			if (rows.length === 0) return [];
			const runs = rows.map(({ run_id }) => String(run_id));
			const [{ messages, calls }, which] = runs.length === 1 ? [ofOne, runs[0]!] : [ofSeveral, JSON.stringify(runs)];
			return whenAllRead([messages(which), calls(which)], (...both) => {
				const [messagesOf, callsOf] = [grouped(both[0]), grouped(both[1])];
				return rows.map((row) => turnOf(row, messagesOf(row), callsOf(row)));
			});
		});
}

/** The parts of each turn, in order. */
function grouped<T>(parts: readonly (readonly [turn: number, part: T])[]): (row: Row) => T[] {
	const byTurn = new Map<number, T[]>();
	for (const [turn, part] of parts) {
		const own = byTurn.get(turn);
		if (own) own.push(part);
		else byTurn.set(turn, [part]);
	}
	return ({ seq }) => byTurn.get(Number(seq)) ?? [];
}

function turnOf(row: Row, messages: StoredMessage[], toolCalls: StoredToolCall[]): Turn {
	const { input, output, extra } = USAGE.of(row);
	const turn: Turn = { ...TURN.of(row), usage: { input, output, ...extra }, messages, toolCalls };
	if (row.error_code !== null) turn.error = ERROR.of(row);
	return turn;
}
