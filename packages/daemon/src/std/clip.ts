/** Text for people: shortened with an ellipsis and without half characters, and safe to print. */

const ELLIPSIS = "…";

/** At most so many UTF-16 units, as a string's length. */
export const clip = (text: string, unitsMax: number): string =>
	text.length <= unitsMax ? text : `${withoutHalf(text.slice(0, Math.max(0, unitsMax - 1)))}${ELLIPSIS}`;

const withoutHalf = (text: string): string => (text.isWellFormed() ? text : text.replace(/[\uD800-\uDBFF]$/, ""));

/** At most so many code points. */
export function clipCharacters(text: string, charactersMax: number): string {
	if (text.length <= charactersMax) return text;
	const characters = Array.from(text);
	if (characters.length <= charactersMax) return text;
	return `${characters.slice(0, Math.max(0, charactersMax - 1)).join("")}${ELLIPSIS}`;
}

/** Far more units than a character has in practice, so that a long text is not taken apart whole. */
const UNITS_PER_GRAPHEME_MAX = 16;

/** At most so many characters as a reader sees them: an emoji of several code points is one. */
export function clipGraphemes(text: string, graphemesMax: number): string {
	const segments = new Intl.Segmenter().segment(text.slice(0, graphemesMax * UNITS_PER_GRAPHEME_MAX));
	const graphemes = Array.from(segments, ({ segment }) => segment);
	return graphemes.length <= graphemesMax
		? graphemes.join("")
		: `${graphemes.slice(0, graphemesMax - 1).join("")}${ELLIPSIS}`;
}

/** At most so many bytes of UTF-8; well-formed. */
export function clipBytes(text: string, bytesMax: number): string {
	const plain = text.toWellFormed();
	if (plain.length * 3 <= bytesMax || Buffer.byteLength(plain) <= bytesMax) return plain;
	const room = new Uint8Array(Math.max(0, bytesMax - Buffer.byteLength(ELLIPSIS)));
	return plain.slice(0, new TextEncoder().encodeInto(plain, room).read) + ELLIPSIS;
}

/** C0, DEL and C1 control characters, among them ESC and CSI (U+009B), and the controls of writing direction. Line feeds and tabs are text. */
const UNPRINTABLE = /(?![\t\n])[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu;

/** Text from outside: nothing in it steers a terminal (escape sequences, carriage returns) or changes the order of what is read (bidirectional overrides). */
export const printable = (text: string): string => text.replace(UNPRINTABLE, "");

/** JSON stays the same value: what is unprintable is escaped, not removed. */
export const printableJson = (json: string): string =>
	json.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
