/** Search in the memory by the full-text index of SQLite, which changes in the same transaction. */

import type { MemorySearch } from "./rows-sql.ts";

export const searchInSqlite: MemorySearch = {
	index: `CREATE VIRTUAL TABLE memory_index USING fts5 (text, content = 'memory', content_rowid = 'seq', tokenize = 'unicode61');
	INSERT INTO memory_index (memory_index, rank) VALUES ('secure-delete', 1);
	CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
		INSERT INTO memory_index (rowid, text) VALUES (new.seq, new.text);
	END;
	CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
		INSERT INTO memory_index (memory_index, rowid, text) VALUES ('delete', old.seq, old.text);
	END;`,
	find: (inBanks) => `SELECT memory.* FROM memory_index JOIN memory ON memory.seq = memory_index.rowid
		WHERE memory_index MATCH ?2 AND ${inBanks} ORDER BY bm25(memory_index), memory.id DESC LIMIT ?3`,
	matchOf,
};

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
