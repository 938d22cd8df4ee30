/**
 * The tables of sessions, turns and inbox, up to when each kind of thing got a separate area. Closed: the next step of one of them goes
 * into its own folder.
 */

export const LEDGER_STEPS: readonly string[] = [
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
