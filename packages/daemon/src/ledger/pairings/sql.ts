/** Pairings in SQL. */

import { Columns, json, number, text, upsertInto } from "../../std/sql/columns.ts";
import { must, mustNot, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { Pairing, PairingOps, Pairings, Person } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
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

const PAIRING = new Columns<Pairing>({
	channel: text("channel"),
	account: text("account"),
	sender: text("sender"),
	senderName: text("sender_name"),
	code: text("code"),
	state: text("state"),
	target: json("target"),
	createdAt: number("created_at"),
	expiresAt: number("expires_at"),
	sentAt: number("told_at"),
	approvedAt: number("approved_at"),
});

const OF_PERSON = "channel = ? AND account = ? AND sender = ?";
const keysOf = ({ channel, account, sender }: Person) => [channel, account, sender] as const;

const SQL = {
	remove: `DELETE FROM pairing WHERE ${OF_PERSON}`,
	expire: "DELETE FROM pairing WHERE state = 'pending' AND expires_at <= ?",
	save: upsertInto("pairing", ["channel", "account", "sender"], PAIRING),
	codeOfOther: `SELECT 1 FROM pairing WHERE NOT (${OF_PERSON}) AND code = ?`,
};

const ops: StepsOf<PairingOps> = {
	save: (_, pairing) => [
		mustNot(SQL.codeOfOther, [...keysOf(pairing), pairing.code], "Another person has this pairing code."),
		step(SQL.save, ...PAIRING.values(pairing)),
	],
	remove: (_, person) => [must(SQL.remove, keysOf(person), `There is no pairing of ${keysOf(person).join("/")}.`)],
	expire: (_, now) => [step(SQL.expire, now)],
};

export const pairingsTable: SqlTable<Pairings> = {
	name: "pairings",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads(db) {
		const get = db.get(`SELECT * FROM pairing WHERE ${OF_PERSON}`, PAIRING.of);
		return {
			get: (person) => get(...keysOf(person)),
			byCode: db.get("SELECT * FROM pairing WHERE code = ?", PAIRING.of),
			list: db.all("SELECT * FROM pairing ORDER BY created_at DESC, sender", PAIRING.of),
			pending: db.one(
				"SELECT count(*) AS count FROM pairing WHERE channel = ? AND account = ? AND state = 'pending'",
				({ count }) => Number(count),
			),
		};
	},
};
