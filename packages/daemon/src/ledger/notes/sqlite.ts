/** Notes in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, type SqliteTable, statement } from "../table.ts";
import type { NoteOps, NoteOwner, StoredNotes } from "./port.ts";

const STEPS: readonly string[] = [
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

export const notesInSqlite: SqliteTable<AtOnce<StoredNotes>> = {
	area: "notes",
	steps: STEPS,
	open(file) {
		file.tables.register<NoteOps>("notes", applier(file));
		const texts = statement(file, `SELECT text FROM account_note WHERE ${OF_OWNER} ORDER BY seq`);
		const state = statement(file, `SELECT key, value FROM account_state WHERE ${OF_OWNER} ORDER BY seq`);
		return {
			list: (owner) => texts.all(...keysOf(owner)).map(({ text }) => String(text)),
			state: (owner) => state.all(...keysOf(owner)).map(({ key, value }) => [String(key), String(value)]),
		};
	},
};

const OF_OWNER = "channel = ?1 AND account = ?2";
const keysOf = ({ channel, account }: NoteOwner) => [channel, account] as const;

function applier(file: SqliteFile): ApplierOf<NoteOps> {
	const add = statement(
		file,
		"INSERT INTO account_note (channel, account, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
	);
	// A new row each time: the order of the rows is the order in which the keys were set.
	const set = statement(
		file,
		"INSERT OR REPLACE INTO account_state (channel, account, key, value) VALUES (?, ?, ?, ?)",
	);
	const trimOf = (table: string) =>
		statement(
			file,
			`DELETE FROM ${table} WHERE ${OF_OWNER} AND seq <=
			(SELECT seq FROM ${table} WHERE ${OF_OWNER} ORDER BY seq DESC LIMIT 1 OFFSET ?3)`,
		);
	const trimNotes = trimOf("account_note");
	const trimState = trimOf("account_state");
	return {
		add(_, owner, texts) {
			for (const text of texts) add.run(...keysOf(owner), text);
		},
		set(_, owner, values) {
			for (const [key, value] of values) set.run(...keysOf(owner), key, value);
		},
		trim(_, owner, notes, keys) {
			trimNotes.run(...keysOf(owner), notes);
			trimState.run(...keysOf(owner), keys);
		},
	};
}
