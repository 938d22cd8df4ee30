/**
 * Tells text that exists to make a markdown parser slow, in one pass over it. The parser takes time that grows with the square of the marks
 * in one paragraph, of underlined headings, and of nesting; below these limits its time is in proportion to the text.
 */

/** Containers nested deeper than this are not prose. */
export const NESTING_MAX = 60;
/** Emphasis marks and brackets of one paragraph. */
const MARKS_MAX = 1000;
/** A table's rows follow one another without a blank line, and each cell is a separate paragraph. */
const ROW_MARKS_MAX = 4000;
/** Underlined headings, and lines where a quote begins or is left without a blank line. */
const BREAKS_MAX = 300;
const BACKTICK_LENGTHS_MAX = 40;
/** Columns before a list item that no reasonable list reaches. */
const INDENT_MAX = 200;

const DEEP_LINE = new RegExp(`^[ \\t]*(?:(?:[>*+-]|\\d{1,9}[.)])[ \\t]*){${NESTING_MAX},}`, "m");
const DEEP_INDENT = new RegExp(`^[ \\t]{${INDENT_MAX},}(?:[*+-]|\\d{1,9}[.)])[ \\t]`, "m");
const DEEP_INLINE = new RegExp(`(?:[[*_~!]\\s*){${NESTING_MAX * 4},}`);
/** Runs of emphasis marks, every bracket, and what may begin a bare link. */
const MARK = /[*_~]+|[[\]]|www\.|:\/\/|@/g;
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
const OPENER = /^(`{3,})[^`]*$|^(~{3,})/;
/** These end the paragraph before them, wherever they stand. */
const STARTER = /^ {0,3}(?:[-+*][ \t]+\S|#{1,6}[ \t])/;

export function isHostile(text: string): boolean {
	if (text.length < BACKTICK_LENGTHS_MAX) return false;
	return (
		DEEP_LINE.test(text) ||
		DEEP_INDENT.test(text) ||
		DEEP_INLINE.test(text) ||
		backtickLengths(text) > BACKTICK_LENGTHS_MAX ||
		crowded(text)
	);
}

function backtickLengths(text: string): number {
	const lengths = new Set<number>();
	for (const [run] of text.matchAll(/`+/g)) lengths.add(run.length);
	return lengths.size;
}

const isQuote = (line: string): boolean => /^ {0,3}>/.test(line);

/** Whether a paragraph has too many marks, or the text too many breaks without a blank line. */
function crowded(text: string): boolean {
	let marks = 0;
	let breaks = 0;
	let before = "";
	let fence = "";
	let html = false;
	for (const line of text.split(/\r\n|\r|\n/)) {
		if (fence !== "") {
			if (closes(line, fence)) fence = "";
			continue;
		}
		const opener = OPENER.exec(line);
		// Inside HTML a fence is text, so after it nothing that looks like code can be trusted to be code.
		if (line.trimStart().startsWith("<")) html = true;
		if (opener && !html) {
			fence = opener[1] ?? opener[2] ?? "";
			marks = 0;
			continue;
		}
		if (line.trim() === "" || STARTER.test(line)) marks = 0;
		const follows = before.trim() !== "" && line.trim() !== "";
		if (follows && (UNDERLINE.test(line) || isQuote(line) !== isQuote(before))) breaks += 1;
		marks += line.match(MARK)?.length ?? 0;
		if (marks > (line.trimStart().startsWith("|") ? ROW_MARKS_MAX : MARKS_MAX)) return true;
		if (breaks > BREAKS_MAX) return true;
		before = line;
	}
	return false;
}

function closes(line: string, fence: string): boolean {
	const text = line.trim();
	return text.length >= fence.length && text === fence[0]?.repeat(text.length) && /^ {0,3}[`~]/.test(line);
}
