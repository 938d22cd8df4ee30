/** Text from outside, safe to print: nothing in it steers a terminal (escape sequences, carriage returns) or changes the order of what is read (bidirectional overrides). */

/** C0, DEL and C1 control characters, among them ESC and CSI (U+009B), and the controls of writing direction. Line feeds and tabs are text. */
const UNPRINTABLE = /(?![\t\n])[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu;

export const printable = (text: string): string => text.replace(UNPRINTABLE, "");

/** JSON stays the same value: what is unprintable is escaped, not removed. */
export const printableJson = (json: string): string =>
	json.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
