/** Values as a person reads them before deciding about them: whole, with nothing that hides, reorders or steers. */

/** Control and format characters (writing direction, zero width), what is drawn as nothing, line separators, and spaces that are not U+0020. */
const DECEPTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** JSON of the same value in one line of visible characters: what could deceive a reader is escaped. */
export const shownJson = (value: unknown): string => (JSON.stringify(value) ?? "null").replace(DECEPTIVE, escaped);

/** Text from another author; keeps its line feeds. */
export const shownText = (text: string): string =>
	text.toWellFormed().replace(DECEPTIVE, (found) => (found === "\n" ? found : escaped(found)));

const escaped = (found: string): string =>
	Array.from({ length: found.length }, (_, n) => `\\u${found.charCodeAt(n).toString(16).padStart(4, "0")}`).join("");
