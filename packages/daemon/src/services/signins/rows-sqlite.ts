/** Sign-ins in a SQLite file. */

import { type AtOnce, must, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { SignInOps, SignInRows, StoredSignIn } from "./rows.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE sign_in (
		id TEXT PRIMARY KEY,
		address TEXT NOT NULL,
		created_at INTEGER NOT NULL,
		expires_at INTEGER NOT NULL,
		revoked_at INTEGER
	) STRICT, WITHOUT ROWID;
	`,
];

export const signInsInSqlite: SqliteTable<AtOnce<SignInRows>> = {
	area: "signins",
	steps: STEPS,
	open(file) {
		file.tables.register<SignInOps>("signins", applier(file));
		const all = statement(file, "SELECT * FROM sign_in ORDER BY created_at, id");
		return { list: () => all.all().map(signInOf) };
	},
};

function applier(file: SqliteFile): ApplierOf<SignInOps> {
	const add = statement(file, "INSERT INTO sign_in (id, address, created_at, expires_at) VALUES (?, ?, ?, ?)");
	const revoke = statement(file, "UPDATE sign_in SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL");
	const forget = statement(file, "DELETE FROM sign_in WHERE min(expires_at, ifnull(revoked_at, expires_at)) < ?");
	return {
		add(_, { id, address, createdAt, expiresAt }) {
			add.run(id, address, createdAt, expiresAt);
		},
		revoke: (_, id, at) => must(revoke.run(at, id), `There is no sign-in ${id}.`),
		forget(_, before) {
			forget.run(before);
		},
	};
}

const signInOf = (row: Row): StoredSignIn => ({
	id: String(row.id),
	address: String(row.address),
	createdAt: Number(row.created_at),
	expiresAt: Number(row.expires_at),
	revokedAt: row.revoked_at === null ? undefined : Number(row.revoked_at),
});
