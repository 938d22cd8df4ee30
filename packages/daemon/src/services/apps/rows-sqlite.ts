/** Applications, and receipts of their messages, in a SQLite file. */

import { Refused } from "@nexus-stream/protocol";
import { type AtOnce, must, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { App, AppOps, AppRows, Receipt, ReceiptOps, ReceiptRows } from "./rows.ts";

const APP_STEPS: readonly string[] = [
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

export const appsInSqlite: SqliteTable<AtOnce<AppRows>> = {
	area: "apps",
	steps: APP_STEPS,
	open(file) {
		file.tables.register<AppOps>("apps", appApplier(file));
		const all = statement(file, "SELECT * FROM app ORDER BY created_at, id");
		return { list: () => all.all().map(appOf) };
	},
};

function appApplier(file: SqliteFile): ApplierOf<AppOps> {
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

const RECEIPT_STEPS: readonly string[] = [
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

export const receiptsInSqlite: SqliteTable<AtOnce<ReceiptRows>> = {
	area: "receipts",
	steps: RECEIPT_STEPS,
	open(file) {
		file.tables.register<ReceiptOps>("receipts", receiptApplier(file));
		const get = statement(file, "SELECT * FROM receipt WHERE message_id = ?");
		return {
			get(messageId) {
				const row = get.get(messageId);
				return row && receiptOf(row);
			},
		};
	},
};

function receiptApplier(file: SqliteFile): ApplierOf<ReceiptOps> {
	const add = statement(
		file,
		"INSERT INTO receipt (message_id, sender, recipient, subject_user_id, message_type, sent_at) VALUES (?, ?, ?, ?, ?, ?)",
	);
	const settle = statement(file, "UPDATE receipt SET settled_at = ? WHERE message_id = ? AND settled_at IS NULL");
	const forget = statement(file, "DELETE FROM receipt WHERE sent_at < ?");
	return {
		add(_, { messageId, from, to, subjectUserId = null, messageType, sentAt }) {
			add.run(messageId, from, to, subjectUserId, messageType, sentAt);
		},
		settle: (_, messageId, at) => must(settle.run(at, messageId), `No sender waits for a receipt of ${messageId}.`),
		forget(_, before) {
			forget.run(before);
		},
	};
}

const receiptOf = (row: Row): Receipt => ({
	messageId: String(row.message_id),
	from: String(row.sender),
	to: String(row.recipient),
	subjectUserId: row.subject_user_id === null ? undefined : String(row.subject_user_id),
	messageType: String(row.message_type),
	sentAt: Number(row.sent_at),
	settledAt: row.settled_at === null ? undefined : Number(row.settled_at),
});
