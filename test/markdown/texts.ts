/** Answers that were written to break what reads them: each of about `n` characters. */

export interface HostileText {
	name: string;
	text(n: number): string;
	/** The parser would take time that grows with the square of the text. */
	slow: boolean;
}

const repeat = (piece: string) => (n: number) => piece.repeat(Math.max(1, Math.floor(n / piece.length)));
/** Each line deeper than the one before. */
const stairs = (step: string, text: string) => (n: number) =>
	Array.from({ length: Math.floor(Math.sqrt(n / step.length)) }, (_, depth) => step.repeat(depth) + text).join("\n");

export const HOSTILE_TEXTS: readonly HostileText[] = [
	{ name: "quotes in quotes", text: repeat(">"), slow: true },
	{ name: "closing brackets", text: repeat("]"), slow: true },
	{ name: "opening brackets", text: repeat("["), slow: true },
	{ name: "images", text: repeat("!["), slow: true },
	{ name: "open links", text: repeat("[a]("), slow: true },
	{ name: "crossing emphasis", text: repeat("*a_"), slow: true },
	{ name: "strong text that never opens", text: repeat("a**"), slow: true },
	{ name: "bare links", text: repeat("www.a_"), slow: true },
	{ name: "addresses", text: repeat("a@"), slow: true },
	{ name: "lists in lists", text: repeat("- "), slow: true },
	{ name: "numbers in numbers", text: repeat("1. "), slow: true },
	{ name: "underlined headings", text: repeat("a\n=\n"), slow: true },
	{ name: "quotes left and entered", text: repeat("a\n> b\n"), slow: true },
	{ name: "emphasis in a quote", text: repeat("> *a_\n"), slow: true },
	{ name: "backticks of every length", text: (n) => lengths(n), slow: true },
	{ name: "stairs of lists", text: stairs(" ", "- a"), slow: true },
	{ name: "stairs of quotes", text: stairs(">", " a"), slow: true },
	{ name: "a table", text: (n) => `|a|b|\n|-|-|\n${repeat("|x|y|\n")(n)}`, slow: false },
	{ name: "a wide table", text: (n) => `${repeat("|a")(n / 2)}\n${repeat("|-")(n / 2)}\n`, slow: false },
	{ name: "items", text: repeat("- a\n"), slow: false },
	{ name: "fences", text: repeat("```\n"), slow: false },
	{ name: "one word", text: repeat("a"), slow: false },
	{ name: "marks on one letter", text: (n) => `e${"\u0301".repeat(n)}`, slow: false },
	{ name: "one endless emoji", text: repeat("👩\u200d"), slow: false },
	{ name: "empty lines", text: repeat("\n"), slow: false },
];

function lengths(n: number): string {
	let text = "";
	for (let count = 1; text.length < n; count += 1) text += `${"`".repeat(count)} `;
	return text;
}
