/** Search in the memory by the full-text index of PostgreSQL. Words are made here: what a letter is depends on a server's locale. */

import type { MemorySearch } from "./rows-sql.ts";

export const searchInPostgres: MemorySearch = {
	index: `ALTER TABLE memory ADD COLUMN words TEXT;
	CREATE INDEX memory_words ON memory USING gin (to_tsvector('simple', words));`,
	kept: {
		sql: "UPDATE memory SET words = ?2 WHERE id = ?1",
		keptOf: (text) => wordsIn(text, KEPT_CHARS_MAX).join(" "),
	},
	// Shorter texts with the words come first, as they do in a SQLite file.
	find: (
		inBanks,
	) => `SELECT memory.* FROM memory WHERE to_tsvector('simple', words) @@ to_tsquery('simple', ?2) AND ${inBanks}
		ORDER BY ts_rank(to_tsvector('simple', words), to_tsquery('simple', ?2), 1) DESC, memory.id DESC LIMIT ?3`,
	matchOf(words) {
		const some = [...new Set(wordsIn(words, WORD_CHARS_MAX))].slice(0, WORDS_MAX).map(quoted);
		return some.length === 0 ? undefined : some.join(" | ");
	},
};

const WORDS_MAX = 32;
const WORD_CHARS_MAX = 100;
/** The server leaves longer ones out of its index. */
const KEPT_CHARS_MAX = 500;
/** A shorter word is searched as it is: as the beginning of a word it would find nearly everything. */
const PREFIX_CHARS_MIN = 3;

/** In lower case and without accents. */
const wordsIn = (text: string, charsMax: number): string[] =>
	text
		.toLowerCase()
		.normalize("NFD")
		.replace(/\p{M}+/gu, "")
		.split(/[^\p{L}\p{N}]+/u)
		.filter(Boolean)
		.map((word) => word.slice(0, charsMax));

/** No letter or digit is an operator; longer words also match as a prefix. */
const quoted = (word: string): string => `'${word}'${Array.from(word).length >= PREFIX_CHARS_MIN ? ":*" : ""}`;
