/** The memory in a SQLite file, with an index for full-text search that changes in the same transaction. */

import { Refused } from "@nexus-stream/protocol";
import { type AtOnce, must, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { MemoryChange, MemoryItem, MemoryOps, MemoryProvenance, MemoryRows } from "./rows.ts";

const PROVENANCE = `at INTEGER NOT NULL, run_id TEXT, agent TEXT, channel TEXT, account TEXT, sender TEXT`;

const STEPS: readonly string[] = [
	`
	CREATE TABLE memory (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		bank TEXT NOT NULL,
		text TEXT NOT NULL,
		${PROVENANCE}
	) STRICT;
	CREATE INDEX memory_bank ON memory (bank, id);
	CREATE VIRTUAL TABLE memory_index USING fts5 (text, content = 'memory', content_rowid = 'seq', tokenize = 'unicode61');
	INSERT INTO memory_index (memory_index, rank) VALUES ('secure-delete', 1);
	CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
		INSERT INTO memory_index (rowid, text) VALUES (new.seq, new.text);
	END;
	CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
		INSERT INTO memory_index (memory_index, rowid, text) VALUES ('delete', old.seq, old.text);
	END;
	CREATE TABLE memory_change (
		seq INTEGER PRIMARY KEY AUTOINCREMENT,
		id TEXT NOT NULL,
		bank TEXT NOT NULL,
		change TEXT NOT NULL,
		${PROVENANCE}
	) STRICT;
	`,
];

/** Older changes are dropped. */
const CHANGES_MAX = 10_000;

/** The list of banks as one JSON parameter; null = all. */
const IN_BANKS = "(?1 IS NULL OR memory.bank IN (SELECT value FROM json_each(?1)))";

export const memoryInSqlite: SqliteTable<AtOnce<MemoryRows>> = {
	area: "memory",
	steps: STEPS,
	listedBy: { table: "memory", id: "id" },
	open(file) {
		file.tables.register<MemoryOps>("memory", applier(file));
		const get = statement(file, "SELECT * FROM memory WHERE id = ?");
		const same = statement(file, "SELECT * FROM memory WHERE bank = ? AND text = ? ORDER BY id LIMIT 1");
		const list = statement(
			file,
			`SELECT * FROM memory WHERE ${IN_BANKS} AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3`,
		);
		const search = statement(
			file,
			`SELECT memory.* FROM memory_index JOIN memory ON memory.seq = memory_index.rowid
			WHERE memory_index MATCH ?2 AND ${IN_BANKS} ORDER BY bm25(memory_index), memory.id DESC LIMIT ?3`,
		);
		const changes = statement(
			file,
			"SELECT * FROM memory_change WHERE ?1 IS NULL OR seq < ?1 ORDER BY seq DESC LIMIT ?2",
		);
		const one = (row: Row | undefined) => row && itemOf(row);
		return {
			get: (id) => one(get.get(id)),
			same: (bank, text) => one(same.get(bank, text)),
			list: ({ banks, limit, before = null }) => list.all(listOrNull(banks), before, limit).map(itemOf),
			search(words, { banks, limit }) {
				const match = matchOf(words);
				return match === undefined ? [] : search.all(listOrNull(banks), match, limit).map(itemOf);
			},
			changes: ({ limit, before = null }) => changes.all(before, limit).map(changeOf),
		};
	},
};

const listOrNull = (banks: readonly string[] | undefined): string | null =>
	banks === undefined ? null : JSON.stringify(banks);

function applier(file: SqliteFile): ApplierOf<MemoryOps> {
	const count = statement(file, "SELECT count(*) AS count FROM memory WHERE bank = ?");
	const countAll = statement(file, "SELECT count(*) AS count FROM memory");
	const add = statement(
		file,
		`INSERT INTO memory (id, bank, text, at, run_id, agent, channel, account, sender) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const remove = statement(file, "DELETE FROM memory WHERE id = ? AND bank = ?");
	const note = statement(
		file,
		`INSERT INTO memory_change (id, bank, change, at, run_id, agent, channel, account, sender) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const trim = statement(file, `DELETE FROM memory_change WHERE seq <= (SELECT max(seq) FROM memory_change) - ?`);
	const log = (id: string, bank: string, change: MemoryChange["change"], provenance: MemoryProvenance) => {
		note.run(id, bank, change, ...columnsOf(provenance));
		trim.run(CHANGES_MAX);
	};
	return {
		add(_, { id, bank, text, provenance }, { itemsMax, itemsTotalMax }) {
			if (Number(count.get(bank)?.count) >= itemsMax)
				throw new Refused("conflict", `This memory bank is full (${itemsMax} items): forget some of them first.`);
			if (Number(countAll.get()?.count) >= itemsTotalMax)
				throw new Refused("conflict", `The memory is full (${itemsTotalMax} items): the operator has to make room.`);
			add.run(id, bank, text, ...columnsOf(provenance));
			log(id, bank, "added", provenance);
		},
		forget(_, { id, bank }, provenance) {
			must(remove.run(id, bank), `There is no memory ${id}.`);
			log(id, bank, "forgotten", provenance);
		},
	};
}

const columnsOf = ({ at, runId, agent, channel, account, sender }: MemoryProvenance) =>
	[at, runId ?? null, agent ?? null, channel ?? null, account ?? null, sender ?? null] as const;

const provenanceOf = (row: Row): MemoryProvenance => ({
	at: Number(row.at),
	runId: row.run_id === null ? undefined : String(row.run_id),
	agent: row.agent === null ? undefined : String(row.agent),
	channel: row.channel === null ? undefined : String(row.channel),
	account: row.account === null ? undefined : String(row.account),
	sender: row.sender === null ? undefined : String(row.sender),
});

const itemOf = (row: Row): MemoryItem => ({
	id: String(row.id),
	bank: String(row.bank),
	text: String(row.text),
	provenance: provenanceOf(row),
});

const changeOf = (row: Row): MemoryChange => ({
	seq: Number(row.seq),
	id: String(row.id),
	bank: String(row.bank),
	change: row.change === "forgotten" ? "forgotten" : "added",
	provenance: provenanceOf(row),
});

const WORDS_MAX = 32;
const WORD_CHARS_MAX = 100;
/** A shorter word is searched as it is: as the beginning of a word it would find nearly everything. */
const PREFIX_CHARS_MIN = 3;

/** Makes a query of SQLite's full-text search: each word is quoted, so that none is an operator, and longer ones also match as a prefix. Undefined without a word. */
export function matchOf(text: string): string | undefined {
	const words = new Set(text.split(BETWEEN_WORDS).filter(Boolean));
	const some = [...words].slice(0, WORDS_MAX).map((word) => word.slice(0, WORD_CHARS_MAX));
	return some.length === 0 ? undefined : some.map(quoted).join(" OR ");
}

/** Spaces, and the signs of ASCII. Beyond it only the tokenizer knows what is a letter to it. */
const BETWEEN_WORDS = /[\s\p{Cc}!-/:-@[-`{-~]+/u;

const quoted = (word: string): string =>
	`"${word.replaceAll('"', '""')}"${Array.from(word).length >= PREFIX_CHARS_MIN ? "*" : ""}`;
