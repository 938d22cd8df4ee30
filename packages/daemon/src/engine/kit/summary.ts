/** Tool calls and results as one line that a person reads while waiting. */

/** A summary's length. */
const SUMMARY_CHARS_MAX = 120;

/** The argument that says most about a call, by its usual names. */
const TELLING = ["path", "file_path", "command", "query", "pattern", "url", "zone"];

export function callSummary(name: string, args: unknown): string {
	if (typeof args !== "object" || args === null) return name;
	const fields = args as Record<string, unknown>;
	const telling = TELLING.map((key) => fields[key]).find(isSaying) ?? Object.values(fields).find(isSaying);
	return telling === undefined ? name : oneLine(`${name} ${telling}`);
}

const isSaying = (value: unknown): value is string | number =>
	(typeof value === "string" && value.trim() !== "") || typeof value === "number";

/** The first non-empty line of a tool's result. */
export const resultSummary = (text: string): string => oneLine(lines(text)[0] ?? "no output");

/** The last line of a running tool's output. */
export const progressSummary = (text: string): string | undefined => {
	const last = lines(text).at(-1);
	return last === undefined ? undefined : oneLine(last);
};

const lines = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

/** Far more code units than the longest summary has, so that a long line is not taken apart whole. */
const LINE_UNITS_MAX = SUMMARY_CHARS_MAX * 16;

function oneLine(text: string): string {
	const flat = text.replace(/\s+/g, " ").trim();
	const chars = Array.from(new Intl.Segmenter().segment(flat.slice(0, LINE_UNITS_MAX)), ({ segment }) => segment);
	return chars.length <= SUMMARY_CHARS_MAX ? chars.join("") : `${chars.slice(0, SUMMARY_CHARS_MAX - 1).join("")}…`;
}
