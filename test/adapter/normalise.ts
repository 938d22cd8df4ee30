/** To compare what a platform shows with the source. */

/** Removes everything that a cut may change: white space, fence lines, quote marks and guards. */
export function normalise(text: string): string {
	return text
		.replace(/^((?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*)(?:`{3,}[^`\r\n]*|~{3,}[^\r\n]*)$/gm, "$1")
		.replace(/^(?:[ \t]*>)+/gm, "")
		.replace(/[\s\\]+/g, "");
}
