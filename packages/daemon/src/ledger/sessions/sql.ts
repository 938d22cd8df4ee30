/** Sessions in SQL. */

import { Columns, number, text } from "../../std/sql/columns.ts";
import { type Row, type SchemaStep, type SqlTable, type Step, step } from "../../std/sql/sql.ts";
import type { Origin } from "../inbox/port.ts";
import type { SessionInfo, StoredSessions } from "./port.ts";

/** The tables of sessions, turns and inbox, from before each had an area. Closed: the next step of one of them goes into its own folder. */
const LEDGER_SCHEMA: readonly SchemaStep[] = [
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

const SESSION = new Columns<Omit<SessionInfo, "origin">>({
	session: text("session"),
	createdAt: number("created_at"),
	updatedAt: number("updated_at"),
	turns: number("turns"),
	revision: number("revision"),
	title: text("title"),
});

/** Columns of an inbound message. */
export const ORIGIN = new Columns<Origin>({
	channel: text("channel"),
	account: text("account"),
	sourceId: text("source_id"),
	sender: text("sender"),
	senderName: text("sender_name"),
});

/** How much of a message a session is called by. */
const TITLE_CHARS_MAX = 80;

const SQL = {
	received: `INSERT INTO sessions (session, created_at, updated_at, turns, title) VALUES (?1, ?2, ?2, 0, ?3)
		ON CONFLICT (session) DO UPDATE SET updated_at = greatest(sessions.updated_at, excluded.updated_at),
		title = CASE WHEN sessions.title = '' THEN excluded.title ELSE sessions.title END`,
	// Messages from before they had a title are called by their first characters.
	answered: `UPDATE sessions SET title = (SELECT coalesce(title, substr(text, 1, ${TITLE_CHARS_MAX})) FROM inbound WHERE event_id = ?1)
		WHERE session = (SELECT session FROM inbound WHERE event_id = ?1) AND title = ''`,
	settled: `INSERT INTO sessions (session, created_at, updated_at, turns, title) VALUES (?1, ?2, ?3, 1, ?4)
		ON CONFLICT (session) DO UPDATE SET updated_at = greatest(sessions.updated_at, excluded.updated_at),
		turns = sessions.turns + 1, title = CASE WHEN sessions.title = '' THEN excluded.title ELSE sessions.title END`,
	changed: "UPDATE sessions SET revision = revision + 1 WHERE session = (SELECT session FROM turns WHERE run_id = ?)",
};

/** The changes that writes of other things make to their session. */
export const sessionUse = {
	/** It got a message; the first one that is answered names it, and one that waits may yet be taken back. */
	received: (session: string, at: number, content: string, answered: boolean): Step =>
		step(SQL.received, session, at, answered ? titleOf(content) : ""),
	/** A message that waited is answered. */
	answered: (eventId: string): Step => step(SQL.answered, eventId),
	/** It got a turn; `content` is what the turn answers. */
	settled: (session: string, startedAt: number, endedAt: number, content: string): Step =>
		step(SQL.settled, session, startedAt, endedAt, titleOf(content)),
	/** Counts a new revision, because the content of a settled run has changed. */
	changed: (runId: string): Step => step(SQL.changed, runId),
};

/** With the beginning of each session, which the index finds at once; never with its attachments. */
const WITH_ORIGIN = `SELECT sessions.*, first.channel, first.account, first.sender, first.sender_name, first.facts
	FROM sessions LEFT JOIN inbound AS first ON first.seq = (SELECT min(seq) FROM inbound WHERE session = sessions.session)`;

export const sessionsTable: SqlTable<StoredSessions> = {
	name: "ledger",
	schema: LEDGER_SCHEMA,
	sql: SQL,
	reads(db) {
		const recent = db.all(
			`${WITH_ORIGIN} WHERE sessions.updated_at < ?1 AND sessions.updated_at >= coalesce(
			(SELECT updated_at FROM sessions WHERE updated_at < ?1 ORDER BY updated_at DESC LIMIT 1 OFFSET ?2 - 1), 0)
			ORDER BY sessions.updated_at DESC, sessions.session`,
			sessionOf,
		);
		return {
			list: ({ limit, before = Number.MAX_SAFE_INTEGER }) => recent(before, limit),
			get: db.get("SELECT * FROM sessions WHERE session = ?", SESSION.of),
		};
	},
};

function sessionOf(row: Row): SessionInfo {
	if (typeof row.channel !== "string") return SESSION.of(row);
	const facts = typeof row.facts === "string" ? (JSON.parse(row.facts) as { chat?: Record<string, unknown> }) : {};
	return { ...SESSION.of(row), origin: { ...ORIGIN.of(row), chat: facts.chat } };
}

/** Anything but single blanks. */
const HAS_ODD_SPACE = /[^\S ]|\s{2}/;

/** The beginning of a message on one line, never ending in half a character. */
export function titleOf(text: string): string {
	const start = text.slice(0, TITLE_CHARS_MAX * 4);
	const line = (HAS_ODD_SPACE.test(start) ? start.replace(/\s+/g, " ") : start).trim();
	return line
		.slice(0, TITLE_CHARS_MAX)
		.toWellFormed()
		.replace(/\uFFFD$/, "");
}
