/** Trust in sessions' histories in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, type SqliteTable, statement } from "../table.ts";
import type { TrustOps, Trusts } from "./port.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE session_trust (
		session TEXT PRIMARY KEY,
		trusted INTEGER NOT NULL,
		at INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	`,
];

export const trustInSqlite: SqliteTable<AtOnce<Trusts>> = {
	area: "trust",
	steps: STEPS,
	open(file) {
		file.tables.register<TrustOps>("trust", applier(file));
		const bySession = statement(file, "SELECT trusted FROM session_trust WHERE session = ?");
		return {
			get(session) {
				const row = bySession.get(session);
				return row && row.trusted === 1;
			},
		};
	},
};

function applier(file: SqliteFile): ApplierOf<TrustOps> {
	const set = statement(
		file,
		`INSERT INTO session_trust (session, trusted, at) VALUES (?1, ?2, ?3)
		ON CONFLICT (session) DO UPDATE SET trusted = ?2, at = ?3`,
	);
	return {
		set(_, session, trusted, at) {
			set.run(session, trusted ? 1 : 0, at);
		},
	};
}
