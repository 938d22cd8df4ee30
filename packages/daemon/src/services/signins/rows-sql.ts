/** Sign-ins in SQL. */

import { Columns, insertInto, number, text } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { SignInOps, SignInRows, StoredSignIn } from "./rows.ts";

const SCHEMA: readonly SchemaStep[] = [
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

const SIGN_IN = new Columns<StoredSignIn>({
	id: text("id"),
	address: text("address"),
	createdAt: number("created_at"),
	expiresAt: number("expires_at"),
	revokedAt: number("revoked_at"),
});

const SQL = {
	add: insertInto("sign_in", SIGN_IN),
	revoke: "UPDATE sign_in SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
	forget: "DELETE FROM sign_in WHERE least(expires_at, coalesce(revoked_at, expires_at)) < ?",
};

const ops: StepsOf<SignInOps> = {
	add: (_, signIn) => [step(SQL.add, ...SIGN_IN.values(signIn))],
	revoke: (_, id, at) => [must(SQL.revoke, [at, id], `There is no sign-in ${id}.`)],
	forget: (_, before) => [step(SQL.forget, before)],
};

export const signInsTable: SqlTable<SignInRows> = {
	name: "signins",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads: (db) => ({ list: db.all("SELECT * FROM sign_in ORDER BY created_at, id", SIGN_IN.of) }),
};
