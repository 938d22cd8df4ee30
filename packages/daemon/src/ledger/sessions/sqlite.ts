/** Sessions in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import { type AtOnce, type Row, type SqliteTable, statement } from "../table.ts";
import type { SessionInfo, SessionOrigin, StoredSessions } from "./port.ts";

/** The tables of sessions, turns and inbox, from before each had an area. Closed: the next step of one of them goes into its own folder. */
const LEDGER_STEPS: readonly string[] = [
	`
	CREATE TABLE sessions (
		session TEXT PRIMARY KEY,
		created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL,
		turns INTEGER NOT NULL,
		title TEXT NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE INDEX sessions_by_use ON sessions (updated_at);

	-- seq is the order of settlement; a session settles one run at a time, so it is also the order of its turns.
	CREATE TABLE turns (
		seq INTEGER PRIMARY KEY,
		run_id TEXT NOT NULL UNIQUE,
		session TEXT NOT NULL,
		engine TEXT NOT NULL,
		status TEXT NOT NULL,
		reason TEXT NOT NULL,
		error_code TEXT,
		error_message TEXT,
		started_at INTEGER NOT NULL,
		ended_at INTEGER NOT NULL,
		first_token_ms INTEGER,
		usage_input INTEGER NOT NULL,
		usage_output INTEGER NOT NULL,
		usage_extra TEXT
	) STRICT;
	CREATE INDEX turns_by_session ON turns (session, seq);

	-- attachments is NULL when the inbound event that the message came with holds them.
	CREATE TABLE messages (
		turn INTEGER NOT NULL,
		ordinal INTEGER NOT NULL,
		role TEXT NOT NULL,
		message_id TEXT,
		event_id TEXT,
		text TEXT NOT NULL,
		attachments TEXT,
		PRIMARY KEY (turn, ordinal)
	) STRICT, WITHOUT ROWID;

	CREATE TABLE tool_calls (
		turn INTEGER NOT NULL,
		ordinal INTEGER NOT NULL,
		call_id TEXT NOT NULL,
		name TEXT NOT NULL,
		args TEXT,
		status TEXT NOT NULL,
		summary TEXT,
		result TEXT,
		message INTEGER NOT NULL,
		started_at INTEGER NOT NULL,
		ended_at INTEGER NOT NULL,
		PRIMARY KEY (turn, ordinal)
	) STRICT, WITHOUT ROWID;

	CREATE TABLE inbound (
		seq INTEGER PRIMARY KEY,
		event_id TEXT NOT NULL UNIQUE,
		session TEXT NOT NULL,
		text TEXT NOT NULL,
		attachments TEXT,
		idempotency_key TEXT,
		received_at INTEGER NOT NULL,
		state TEXT NOT NULL,
		run_id TEXT,
		because TEXT
	) STRICT;
	CREATE INDEX inbound_by_session ON inbound (session, seq);
	CREATE UNIQUE INDEX inbound_by_key ON inbound (session, idempotency_key) WHERE idempotency_key IS NOT NULL;
	CREATE INDEX inbound_queued ON inbound (seq) WHERE state = 'queued';
	`,
	`
	ALTER TABLE turns ADD COLUMN trace TEXT;

	-- channel, account, source_id, sender and sender_name are its origin; queue, batch and facts are JSON.
	ALTER TABLE inbound ADD COLUMN superseded_by TEXT;
	ALTER TABLE inbound ADD COLUMN channel TEXT;
	ALTER TABLE inbound ADD COLUMN account TEXT;
	ALTER TABLE inbound ADD COLUMN source_id TEXT;
	ALTER TABLE inbound ADD COLUMN sender TEXT;
	ALTER TABLE inbound ADD COLUMN sender_name TEXT;
	ALTER TABLE inbound ADD COLUMN queue TEXT;
	ALTER TABLE inbound ADD COLUMN batch TEXT;
	ALTER TABLE inbound ADD COLUMN facts TEXT;
	CREATE UNIQUE INDEX inbound_by_source ON inbound (channel, account, source_id) WHERE source_id IS NOT NULL;
	CREATE INDEX inbound_rejected ON inbound (seq) WHERE state = 'rejected';
	`,
	`
	ALTER TABLE inbound ADD COLUMN trace_id TEXT;

	-- JSON.
	ALTER TABLE messages ADD COLUMN parts TEXT;
	ALTER TABLE messages ADD COLUMN reasoning TEXT;
	`,
];

/** With the beginning of each session, which the index finds at once; never with its attachments. */
const WITH_ORIGIN = `SELECT sessions.*, first.channel, first.account, first.sender, first.sender_name,
	json_extract(first.facts, '$.chat') AS chat
	FROM sessions LEFT JOIN inbound first ON first.seq = (SELECT min(seq) FROM inbound WHERE session = sessions.session)`;

export const sessionsInSqlite: SqliteTable<AtOnce<StoredSessions>> = {
	area: "ledger",
	steps: LEDGER_STEPS,
	open(file) {
		const recent = statement(
			file,
			`${WITH_ORIGIN} WHERE sessions.updated_at < ?1 AND sessions.updated_at >= coalesce(
			(SELECT updated_at FROM sessions WHERE updated_at < ?1 ORDER BY updated_at DESC LIMIT 1 OFFSET ?2 - 1), 0)
			ORDER BY sessions.updated_at DESC, sessions.session`,
		);
		const byLabel = statement(file, "SELECT * FROM sessions WHERE session = ?");
		return {
			list: ({ limit, before = Number.MAX_SAFE_INTEGER }) => recent.all(before, limit).map(sessionOf),
			get(label) {
				const row = byLabel.get(label);
				return row && sessionOf(row);
			},
		};
	},
};

/** The changes that writes of other things make to their session. */
export function sessionUse(file: SqliteFile) {
	const touch = statement(
		file,
		`INSERT INTO sessions (session, created_at, updated_at, turns, title) VALUES (?1, ?2, ?2, 0, ?3)
		ON CONFLICT (session) DO UPDATE SET updated_at = max(updated_at, ?2), title = iif(title = '', ?3, title)`,
	);
	const name = statement(file, "UPDATE sessions SET title = ?2 WHERE session = ?1 AND title = ''");
	const countTurn = statement(
		file,
		`INSERT INTO sessions (session, created_at, updated_at, turns, title) VALUES (?1, ?2, ?3, 1, ?4)
		ON CONFLICT (session) DO UPDATE SET updated_at = max(updated_at, ?3), turns = turns + 1,
		title = iif(title = '', ?4, title)`,
	);
	const changed = statement(
		file,
		"UPDATE sessions SET revision = revision + 1 WHERE session = (SELECT session FROM turns WHERE run_id = ?)",
	);
	return {
		/** It got a message; the first one that is answered names it, and one that waits may yet be taken back. */
		received: (session: string, at: number, text: string, answered: boolean) =>
			touch.run(session, at, answered ? titleOf(text) : ""),
		/** A message that waited is answered. */
		answered: (session: string, text: string) => name.run(session, titleOf(text)),
		/** It got a turn; `text` is what the turn answers. */
		settled: (session: string, startedAt: number, endedAt: number, text: string) =>
			countTurn.run(session, startedAt, endedAt, titleOf(text)),
		/** Counts a new revision, because the content of a settled run has changed. */
		changed: (runId: string) => changed.run(runId),
	};
}

const sessionOf = (row: Row): SessionInfo => ({
	session: String(row.session),
	createdAt: Number(row.created_at),
	updatedAt: Number(row.updated_at),
	turns: Number(row.turns),
	revision: Number(row.revision),
	title: String(row.title),
	origin: typeof row.channel === "string" ? originOf(row) : undefined,
});

const originOf = (row: Row): SessionOrigin => ({
	channel: String(row.channel),
	account: String(row.account),
	sender: String(row.sender),
	senderName: typeof row.sender_name === "string" ? row.sender_name : undefined,
	chat: typeof row.chat === "string" ? (JSON.parse(row.chat) as Record<string, unknown>) : undefined,
});

/** How much of a message a session is called by. */
const TITLE_CHARS_MAX = 80;

/** Anything but single blanks. */
const HAS_ODD_SPACE = /[^\S ]|\s{2}/;

/** The beginning of a message on one line, never ending in half a character. */
function titleOf(text: string): string {
	const start = text.slice(0, TITLE_CHARS_MAX * 4);
	const line = (HAS_ODD_SPACE.test(start) ? start.replace(/\s+/g, " ") : start).trim();
	return line
		.slice(0, TITLE_CHARS_MAX)
		.toWellFormed()
		.replace(/\uFFFD$/, "");
}
