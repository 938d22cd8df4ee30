/** Phases in SQL. */

import { Columns, number, text } from "../../std/sql/columns.ts";
import { type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { PhaseOps, Phases, StoredPhase } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE session_phase (
		session TEXT PRIMARY KEY,
		name TEXT NOT NULL,
		since INTEGER NOT NULL,
		left_name TEXT,
		because TEXT,
		turns INTEGER NOT NULL,
		completions INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	`,
];

const PHASE = new Columns<StoredPhase>({
	session: text("session"),
	name: text("name"),
	since: number("since"),
	from: text("left_name"),
	because: text("because"),
	turns: number("turns"),
	completions: number("completions"),
});

const SQL = {
	begin: `INSERT INTO session_phase (session, name, since, turns, completions) VALUES (?, ?, ?, 0, 0)
		ON CONFLICT (session) DO NOTHING`,
	enter: `INSERT INTO session_phase (session, name, since, because, turns, completions) VALUES (?1, ?2, ?3, ?4, 0, 0)
		ON CONFLICT (session) DO UPDATE SET left_name = session_phase.name, name = excluded.name, since = excluded.since,
		because = excluded.because, turns = 0, completions = 0 WHERE session_phase.name <> excluded.name`,
	count: "UPDATE session_phase SET turns = turns + ?2, completions = completions + ?3 WHERE session = ?1",
};

const ops: StepsOf<PhaseOps> = {
	begin: (_, session, name, at) => [step(SQL.begin, session, name, at)],
	enter: (_, session, name, because, at) => [step(SQL.enter, session, name, at, because)],
	count: (_, session, turns, completions) => [step(SQL.count, session, turns, completions)],
};

export const phasesTable: SqlTable<Phases> = {
	name: "phases",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads: (db) => ({ get: db.get("SELECT * FROM session_phase WHERE session = ?", PHASE.of) }),
};
