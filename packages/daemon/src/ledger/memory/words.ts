/** From what somebody typed to a query of SQLite's full-text search: plain words, and nothing that it would take for an operator. */

const WORDS_MAX = 32;
const WORD_CHARS_MAX = 100;
/** A shorter word is searched as it is: as the beginning of a word it would find nearly everything. */
const PREFIX_CHARS_MIN = 3;

/** Any of the words, each quoted; longer ones also as the beginning of a word. Undefined when there is none. */
export function matchOf(text: string): string | undefined {
	const words = new Set(text.split(BETWEEN_WORDS).filter(Boolean));
	const some = [...words].slice(0, WORDS_MAX).map((word) => word.slice(0, WORD_CHARS_MAX));
	return some.length === 0 ? undefined : some.map(quoted).join(" OR ");
}

/** Spaces, and the signs of ASCII. Beyond it only the tokenizer knows what is a letter to it. */
const BETWEEN_WORDS = /[\s\p{Cc}!-/:-@[-`{-~]+/u;

const quoted = (word: string): string =>
	`"${word.replaceAll('"', '""')}"${Array.from(word).length >= PREFIX_CHARS_MIN ? "*" : ""}`;
