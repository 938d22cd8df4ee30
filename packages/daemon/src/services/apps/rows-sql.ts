/** Applications, and receipts of their messages, in SQL. */

import { Columns, insertInto, number, text } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { App, AppOps, AppRows, Receipt, ReceiptOps, ReceiptRows } from "./rows.ts";

const APP_SCHEMA: readonly SchemaStep[] = [
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

const APP = new Columns<App>({
	id: text("id"),
	name: text("name"),
	tokenHash: text("token_hash"),
	createdAt: number("created_at"),
	revokedAt: number("revoked_at"),
});

const APP_SQL = {
	room: "SELECT 1 WHERE (SELECT count(*) FROM app WHERE revoked_at IS NULL) < ?",
	add: `${insertInto("app", APP)} ON CONFLICT (id) DO UPDATE SET name = excluded.name, token_hash = excluded.token_hash,
		created_at = excluded.created_at, revoked_at = NULL WHERE app.revoked_at IS NOT NULL`,
	revoke: "UPDATE app SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
};

const appOps: StepsOf<AppOps> = {
	add: (_, app, { appsMax }) => [
		must(APP_SQL.room, [appsMax], `There are ${appsMax} applications already: remove one first.`),
		must(APP_SQL.add, APP.values(app), `There is an application ${app.id} already.`),
	],
	revoke: (_, id, at) => [must(APP_SQL.revoke, [at, id], `There is no application ${id}.`)],
};

export const appsTable: SqlTable<AppRows> = {
	name: "apps",
	schema: APP_SCHEMA,
	sql: APP_SQL,
	ops: appOps,
	reads: (db) => ({ list: db.all("SELECT * FROM app ORDER BY created_at, id", APP.of) }),
};

const RECEIPT_SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE receipt (
		message_id TEXT PRIMARY KEY,
		sender TEXT NOT NULL,
		recipient TEXT NOT NULL,
		subject_user_id TEXT,
		message_type TEXT NOT NULL,
		sent_at INTEGER NOT NULL,
		settled_at INTEGER
	) STRICT, WITHOUT ROWID;
	CREATE INDEX receipt_sent_at ON receipt (sent_at);
	`,
];

const RECEIPT = new Columns<Receipt>({
	messageId: text("message_id"),
	from: text("sender"),
	to: text("recipient"),
	subjectUserId: text("subject_user_id"),
	messageType: text("message_type"),
	sentAt: number("sent_at"),
	settledAt: number("settled_at"),
});

const RECEIPT_SQL = {
	add: insertInto("receipt", RECEIPT),
	settle: "UPDATE receipt SET settled_at = ? WHERE message_id = ? AND settled_at IS NULL",
	forget: "DELETE FROM receipt WHERE sent_at < ?",
};

const receiptOps: StepsOf<ReceiptOps> = {
	add: (_, receipt) => [step(RECEIPT_SQL.add, ...RECEIPT.values(receipt))],
	settle: (_, messageId, at) => [
		must(RECEIPT_SQL.settle, [at, messageId], `No sender waits for a receipt of ${messageId}.`),
	],
	forget: (_, before) => [step(RECEIPT_SQL.forget, before)],
};

export const receiptsTable: SqlTable<ReceiptRows> = {
	name: "receipts",
	schema: RECEIPT_SCHEMA,
	sql: RECEIPT_SQL,
	ops: receiptOps,
	reads: (db) => ({ get: db.get("SELECT * FROM receipt WHERE message_id = ?", RECEIPT.of) }),
};
