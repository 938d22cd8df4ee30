/** Grants in SQL. */

import { Columns, insertInto, number, text } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { Grant, GrantOps, Grants } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE approval_grant (
		id TEXT PRIMARY KEY,
		session TEXT NOT NULL,
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		sender TEXT NOT NULL,
		agent TEXT,
		tool TEXT NOT NULL,
		digest TEXT,
		prefix TEXT,
		granted_by TEXT NOT NULL,
		created_at INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	`,
];

const GRANT = new Columns<Grant>({
	id: text("id"),
	session: text("session"),
	channel: text("channel"),
	account: text("account"),
	sender: text("sender"),
	agent: text("agent"),
	tool: text("tool"),
	digest: text("digest"),
	prefix: text("prefix"),
	by: text("granted_by"),
	createdAt: number("created_at"),
});

const SQL = {
	save: insertInto("approval_grant", GRANT),
	revoke: "DELETE FROM approval_grant WHERE id = ?",
};

const ops: StepsOf<GrantOps> = {
	save: (_, grant) => [step(SQL.save, ...GRANT.values(grant))],
	revoke: (_, id) => [must(SQL.revoke, [id], `There is no grant ${id}.`)],
};

export const grantsTable: SqlTable<Grants> = {
	name: "grants",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads: (db) => ({ list: db.all("SELECT * FROM approval_grant ORDER BY created_at DESC, id", GRANT.of) }),
};
