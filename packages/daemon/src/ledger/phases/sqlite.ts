/** Phases in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, type Row, type SqliteTable, statement } from "../table.ts";
import type { PhaseOps, Phases, StoredPhase } from "./port.ts";

const STEPS: readonly string[] = [
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

export const phasesInSqlite: SqliteTable<AtOnce<Phases>> = {
	area: "phases",
	steps: STEPS,
	open(file) {
		file.tables.register<PhaseOps>("phases", applier(file));
		const bySession = statement(file, "SELECT * FROM session_phase WHERE session = ?");
		return {
			get(session) {
				const row = bySession.get(session);
				return row && phaseOf(row);
			},
		};
	},
};

function applier(file: SqliteFile): ApplierOf<PhaseOps> {
	const begin = statement(
		file,
		`INSERT INTO session_phase (session, name, since, turns, completions) VALUES (?, ?, ?, 0, 0)
		ON CONFLICT (session) DO NOTHING`,
	);
	const enter = statement(
		file,
		`INSERT INTO session_phase (session, name, since, because, turns, completions) VALUES (?1, ?2, ?4, ?3, 0, 0)
		ON CONFLICT (session) DO UPDATE SET left_name = name, name = ?2, since = ?4, because = ?3, turns = 0, completions = 0
		WHERE name <> ?2`,
	);
	const count = statement(
		file,
		"UPDATE session_phase SET turns = turns + ?2, completions = completions + ?3 WHERE session = ?1",
	);
	return {
		begin(_, session, name, at) {
			begin.run(session, name, at);
		},
		enter(_, session, name, because, at) {
			enter.run(session, name, because, at);
		},
		count(_, session, turns, completions) {
			count.run(session, turns, completions);
		},
	};
}

function phaseOf(row: Row): StoredPhase {
	const phase: StoredPhase = {
		session: String(row.session),
		name: String(row.name),
		since: Number(row.since),
		turns: Number(row.turns),
		completions: Number(row.completions),
	};
	if (row.left_name !== null) phase.from = String(row.left_name);
	if (row.because !== null) phase.because = String(row.because);
	return phase;
}
