/** Idempotency keys in SQL. */

import { Columns, number, text, upsertInto } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import { IDEMPOTENCY_KEPT_MS, type IdempotencyClaim, type IdempotencyOps, type IdempotencyRows } from "./rows.ts";

const SCHEMA: readonly SchemaStep[] = [
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

const CLAIM = new Columns<IdempotencyClaim>({
	appId: text("app_id"),
	key: text("key"),
	digest: text("digest"),
	result: text("result"),
	at: number("at"),
});

const SQL = {
	// One whose time is over gives way; one that holds stays, and the statement changes nothing.
	claim: `${upsertInto("idempotency", ["app_id", "key"], CLAIM)} WHERE idempotency.at <= ?6`,
	forget: `DELETE FROM idempotency WHERE (app_id, key) IN
		(SELECT app_id, key FROM idempotency WHERE at < ? ORDER BY at LIMIT ?)`,
};

const ops: StepsOf<IdempotencyOps> = {
	claim: (_, claim) => [
		must(
			SQL.claim,
			[...CLAIM.values(claim), claim.at - IDEMPOTENCY_KEPT_MS],
			`The idempotency key ${claim.key} was used before.`,
			"duplicate",
		),
	],
	forget: (_, before, claimsMax) => [step(SQL.forget, before, claimsMax)],
};

export const idempotencyTable: SqlTable<IdempotencyRows> = {
	name: "idempotency",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads(db) {
		const find = db.get("SELECT * FROM idempotency WHERE app_id = ? AND key = ? AND at > ?", CLAIM.of);
		return {
			find: (appId, key, now) => find(appId, key, now - IDEMPOTENCY_KEPT_MS),
			isOlder: db.has("SELECT 1 FROM idempotency WHERE at < ? LIMIT 1"),
		};
	},
};
