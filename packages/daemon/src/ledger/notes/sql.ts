/** Notes in SQL. */

import { type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { NoteOps, NoteOwner, StoredNotes } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE account_note (
		seq INTEGER PRIMARY KEY,
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		text TEXT NOT NULL,
		UNIQUE (channel, account, text)
	) STRICT;
	CREATE INDEX account_note_order ON account_note (channel, account, seq);
	CREATE TABLE account_state (
		seq INTEGER PRIMARY KEY,
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		key TEXT NOT NULL,
		value TEXT NOT NULL,
		UNIQUE (channel, account, key)
	) STRICT;
	`,
];

const OF_OWNER = "channel = ?1 AND account = ?2";
const keysOf = ({ channel, account }: NoteOwner) => [channel, account] as const;

const trim = (table: string) => `DELETE FROM ${table} WHERE ${OF_OWNER} AND seq <=
	(SELECT seq FROM ${table} WHERE ${OF_OWNER} ORDER BY seq DESC LIMIT 1 OFFSET ?3)`;

const SQL = {
	add: "INSERT INTO account_note (channel, account, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
	// A new row each time: the order of the rows is the order in which the keys were set.
	unset: `DELETE FROM account_state WHERE ${OF_OWNER} AND key = ?3`,
	set: "INSERT INTO account_state (channel, account, key, value) VALUES (?, ?, ?, ?)",
	trimNotes: trim("account_note"),
	trimState: trim("account_state"),
};

const ops: StepsOf<NoteOps> = {
	add: (_, owner, texts) => texts.map((text) => step(SQL.add, ...keysOf(owner), text)),
	set: (_, owner, values) =>
		values.flatMap(([key, value]) => [
			step(SQL.unset, ...keysOf(owner), key),
			step(SQL.set, ...keysOf(owner), key, value),
		]),
	trim: (_, owner, notes, keys) => [
		step(SQL.trimNotes, ...keysOf(owner), notes),
		step(SQL.trimState, ...keysOf(owner), keys),
	],
};

export const notesTable: SqlTable<StoredNotes> = {
	name: "notes",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads(db) {
		const texts = db.all(`SELECT text FROM account_note WHERE ${OF_OWNER} ORDER BY seq`, (row) => String(row.text));
		const state = db.all(
			`SELECT key, value FROM account_state WHERE ${OF_OWNER} ORDER BY seq`,
			({ key, value }): [string, string] => [String(key), String(value)],
		);
		return { list: (owner) => texts(...keysOf(owner)), state: (owner) => state(...keysOf(owner)) };
	},
};
