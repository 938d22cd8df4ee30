/** Receipts in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, must, type Row, type SqliteTable, statement } from "../table.ts";
import type { Receipt, ReceiptOps, Receipts } from "./port.ts";

const STEPS: readonly string[] = [
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

export const receiptsInSqlite: SqliteTable<AtOnce<Receipts>> = {
	area: "receipts",
	steps: STEPS,
	open(file) {
		file.tables.register<ReceiptOps>("receipts", applier(file));
		const get = statement(file, "SELECT * FROM receipt WHERE message_id = ?");
		return {
			get(messageId) {
				const row = get.get(messageId);
				return row && receiptOf(row);
			},
		};
	},
};

function applier(file: SqliteFile): ApplierOf<ReceiptOps> {
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
		settle: (_, messageId, at) => must(settle.run(at, messageId), `Nobody waits for a receipt of ${messageId}.`),
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
