/** Grants in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, must, type Row, type SqliteTable, statement } from "../table.ts";
import type { Grant, GrantOps, Grants } from "./port.ts";

const STEPS: readonly string[] = [
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

export const grantsInSqlite: SqliteTable<AtOnce<Grants>> = {
	area: "grants",
	steps: STEPS,
	open(file) {
		file.tables.register<GrantOps>("grants", applier(file));
		const all = statement(file, "SELECT * FROM approval_grant ORDER BY created_at DESC, id");
		return { list: () => all.all().map(grantOf) };
	},
};

function applier(file: SqliteFile): ApplierOf<GrantOps> {
	const save = statement(
		file,
		`INSERT INTO approval_grant (id, session, channel, account, sender, agent, tool, digest, prefix, granted_by, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const revoke = statement(file, "DELETE FROM approval_grant WHERE id = ?");
	return {
		save(_, grant) {
			const { id, session, channel, account, sender, agent = null, tool, digest = null, prefix = null } = grant;
			save.run(id, session, channel, account, sender, agent, tool, digest, prefix, grant.by, grant.createdAt);
		},
		revoke: (_, id) => must(revoke.run(id), `There is no grant ${id}.`),
	};
}

const grantOf = (row: Row): Grant => ({
	id: String(row.id),
	session: String(row.session),
	channel: String(row.channel),
	account: String(row.account),
	sender: String(row.sender),
	agent: row.agent === null ? undefined : String(row.agent),
	tool: String(row.tool),
	digest: row.digest === null ? undefined : String(row.digest),
	prefix: row.prefix === null ? undefined : String(row.prefix),
	by: String(row.granted_by),
	createdAt: Number(row.created_at),
});
