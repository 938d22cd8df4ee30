/** Pairings in a SQLite file. */

import { Refused } from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, jsonText, must, type Row, type SqliteTable, statement } from "../table.ts";
import type { Pairing, PairingOps, Pairings, Person } from "./port.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE pairing (
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		sender TEXT NOT NULL,
		sender_name TEXT,
		code TEXT NOT NULL UNIQUE,
		state TEXT NOT NULL,
		target TEXT NOT NULL,
		created_at INTEGER NOT NULL,
		expires_at INTEGER NOT NULL,
		told_at INTEGER NOT NULL,
		approved_at INTEGER,
		PRIMARY KEY (channel, account, sender)
	) STRICT, WITHOUT ROWID;
	`,
];

export const pairingsInSqlite: SqliteTable<AtOnce<Pairings>> = {
	area: "pairings",
	steps: STEPS,
	open(file) {
		file.tables.register<PairingOps>("pairings", applier(file));
		const get = statement(file, `SELECT * FROM pairing WHERE ${OF_PERSON}`);
		const byCode = statement(file, "SELECT * FROM pairing WHERE code = ?");
		const all = statement(file, "SELECT * FROM pairing ORDER BY created_at DESC, sender");
		const pending = statement(
			file,
			"SELECT count(*) AS count FROM pairing WHERE channel = ? AND account = ? AND state = 'pending'",
		);
		const one = (row: Row | undefined) => row && pairingOf(row);
		return {
			get: (person) => one(get.get(...keysOf(person))),
			byCode: (code) => one(byCode.get(code)),
			list: () => all.all().map(pairingOf),
			pending: (channel, account) => Number(pending.get(channel, account)?.count),
		};
	},
};

const OF_PERSON = "channel = ? AND account = ? AND sender = ?";
const keysOf = ({ channel, account, sender }: Person) => [channel, account, sender] as const;

function applier(file: SqliteFile): ApplierOf<PairingOps> {
	const remove = statement(file, `DELETE FROM pairing WHERE ${OF_PERSON}`);
	const expire = statement(file, "DELETE FROM pairing WHERE state = 'pending' AND expires_at <= ?");
	const save = statement(
		file,
		`INSERT INTO pairing (channel, account, sender, sender_name, code, state, target, created_at, expires_at, told_at,
		approved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, account, sender) DO UPDATE SET sender_name = excluded.sender_name, code = excluded.code,
		state = excluded.state, target = excluded.target, created_at = excluded.created_at,
		expires_at = excluded.expires_at, told_at = excluded.told_at, approved_at = excluded.approved_at`,
	);
	const codeOfOther = statement(file, `SELECT 1 FROM pairing WHERE NOT (${OF_PERSON}) AND code = ?`);
	return {
		save(_, pairing) {
			const { senderName = null, code, state, target, createdAt, expiresAt, sentAt, approvedAt = null } = pairing;
			const person = keysOf(pairing);
			if (codeOfOther.get(...person, code)) throw new Refused("conflict", "Another person has this pairing code.");
			save.run(...person, senderName, code, state, jsonText(target), createdAt, expiresAt, sentAt, approvedAt);
		},
		remove: (_, person) => must(remove.run(...keysOf(person)), `There is no pairing of ${keysOf(person).join("/")}.`),
		expire(_, now) {
			expire.run(now);
		},
	};
}

const pairingOf = (row: Row): Pairing => ({
	channel: String(row.channel),
	account: String(row.account),
	sender: String(row.sender),
	senderName: row.sender_name === null ? undefined : String(row.sender_name),
	code: String(row.code),
	state: row.state === "approved" ? "approved" : "pending",
	target: JSON.parse(String(row.target)) as Record<string, unknown>,
	createdAt: Number(row.created_at),
	expiresAt: Number(row.expires_at),
	sentAt: Number(row.told_at),
	approvedAt: row.approved_at === null ? undefined : Number(row.approved_at),
});
