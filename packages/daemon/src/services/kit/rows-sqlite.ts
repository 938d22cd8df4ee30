/** Idempotency keys in a SQLite file. */

import { Refused } from "@nexus-stream/protocol";
import { type AtOnce, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { IDEMPOTENCY_KEPT_MS, type IdempotencyClaim, type IdempotencyOps, type IdempotencyRows } from "./rows.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE idempotency (
		app_id TEXT NOT NULL,
		key TEXT NOT NULL,
		digest TEXT NOT NULL,
		result TEXT NOT NULL,
		at INTEGER NOT NULL,
		PRIMARY KEY (app_id, key)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX idempotency_by_time ON idempotency (at);
	`,
];

export const idempotencyInSqlite: SqliteTable<AtOnce<IdempotencyRows>> = {
	area: "idempotency",
	steps: STEPS,
	open(file) {
		file.tables.register<IdempotencyOps>("idempotency", applier(file));
		const find = statement(file, "SELECT * FROM idempotency WHERE app_id = ? AND key = ? AND at > ?");
		const older = statement(file, "SELECT 1 FROM idempotency WHERE at < ? LIMIT 1");
		return {
			find(appId, key, now) {
				const row = find.get(appId, key, now - IDEMPOTENCY_KEPT_MS);
				return row && claimOf(row);
			},
			isOlder: (before) => older.get(before) !== undefined,
		};
	},
};

function applier(file: SqliteFile): ApplierOf<IdempotencyOps> {
	// One whose time is over gives way; one that holds stays, and the statement changes nothing.
	const claim = statement(
		file,
		`INSERT INTO idempotency (app_id, key, digest, result, at) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (app_id, key) DO UPDATE SET digest = excluded.digest, result = excluded.result, at = excluded.at
		WHERE idempotency.at <= ?6`,
	);
	const forget = statement(
		file,
		`DELETE FROM idempotency WHERE (app_id, key) IN
		(SELECT app_id, key FROM idempotency WHERE at < ? ORDER BY at LIMIT ?)`,
	);
	return {
		claim(_, { appId, key, digest, result, at }) {
			if (claim.run(appId, key, digest, result, at, at - IDEMPOTENCY_KEPT_MS) === 0)
				throw new Refused("duplicate", `The idempotency key ${key} was used before.`);
		},
		forget(_, before, claimsMax) {
			forget.run(before, claimsMax);
		},
	};
}

const claimOf = (row: Row): IdempotencyClaim => ({
	appId: String(row.app_id),
	key: String(row.key),
	digest: String(row.digest),
	result: String(row.result),
	at: Number(row.at),
});
