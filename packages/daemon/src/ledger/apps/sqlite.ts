/** Applications in a SQLite file. */

import { Refused } from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, must, type Row, type SqliteTable, statement } from "../table.ts";
import type { App, AppOps, Apps } from "./port.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE app (
		id TEXT PRIMARY KEY,
		name TEXT NOT NULL,
		token_hash TEXT NOT NULL UNIQUE,
		created_at INTEGER NOT NULL,
		revoked_at INTEGER
	) STRICT, WITHOUT ROWID;
	`,
];

export const appsInSqlite: SqliteTable<AtOnce<Apps>> = {
	area: "apps",
	steps: STEPS,
	open(file) {
		file.tables.register<AppOps>("apps", applier(file));
		const all = statement(file, "SELECT * FROM app ORDER BY created_at, id");
		return { list: () => all.all().map(appOf) };
	},
};

function applier(file: SqliteFile): ApplierOf<AppOps> {
	const active = statement(file, "SELECT count(*) AS count FROM app WHERE revoked_at IS NULL");
	const add = statement(
		file,
		`INSERT INTO app (id, name, token_hash, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, token_hash = excluded.token_hash, created_at = excluded.created_at,
		revoked_at = NULL WHERE revoked_at IS NOT NULL`,
	);
	const revoke = statement(file, "UPDATE app SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL");
	return {
		add(_, { id, name, tokenHash, createdAt }, { appsMax }) {
			if (Number(active.get()?.count) >= appsMax)
				throw new Refused("conflict", `There are ${appsMax} applications already: remove one first.`);
			must(add.run(id, name, tokenHash, createdAt), `There is an application ${id} already.`);
		},
		revoke: (_, id, at) => must(revoke.run(at, id), `There is no application ${id}.`),
	};
}

const appOf = (row: Row): App => ({
	id: String(row.id),
	name: String(row.name),
	tokenHash: String(row.token_hash),
	createdAt: Number(row.created_at),
	revokedAt: row.revoked_at === null ? undefined : Number(row.revoked_at),
});
