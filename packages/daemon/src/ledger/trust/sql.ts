/** Trust in sessions' histories in SQL. */

import { type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { TrustOps, Trusts } from "./port.ts";

const SQL = {
	set: `INSERT INTO session_trust (session, trusted, at) VALUES (?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET trusted = excluded.trusted, at = excluded.at`,
};

const ops: StepsOf<TrustOps> = {
	set: (_, session, trusted, at) => [step(SQL.set, session, trusted ? 1 : 0, at)],
};

export const trustTable: SqlTable<Trusts> = {
	name: "trust",
	schema: [
		`
	CREATE TABLE session_trust (
		session TEXT PRIMARY KEY,
		trusted INTEGER NOT NULL,
		at INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	`,
	],
	sql: SQL,
	ops,
	reads: (db) => ({
		get: db.get("SELECT trusted FROM session_trust WHERE session = ?", ({ trusted }) => trusted === 1),
	}),
};
