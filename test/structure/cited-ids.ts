/** Finds the ids of requirements and rules that comments, test titles and documents cite, and where each is defined. */

import { readableTexts } from "./readable.ts";
import { lineNumbers } from "./syntax.ts";

export interface Citation {
	readonly id: string;
	readonly file: string;
	readonly line: number;
}

const ID = String.raw`(?:P\d\.\d+|R\d-\d+|ST\d+|[A-Z]-[A-Z]+-\d+|[A-Z]\d{1,2})`;
/** `A10–A14` and `R4-27 to R4-31` cite all ids between, too. */
const CITED = new RegExp(String.raw`(?<![\w./+#^@<-])(${ID})(?:(?:–| to )(${ID}))?(?![\w-]|\.\d)`, "g");
const DEFINED = new RegExp(String.raw`^(?:- )?\*\*(${ID})\b`, "gm");

/** Tables of cases have the id in a column. */
const QUOTED = /"(R\d-\d+)"/g;

/** Names of other things that look like ids: an engine, control characters, the levels in ARCHITECTURE.md. */
const OTHERS = /^(?:V8|C[01]|L\d)$/;

function idsBetween(first: string, last: string): string[] {
	const [, stem, from] = /^(.*?)(\d+)$/.exec(first)!;
	const [, , to] = /^(.*?)(\d+)$/.exec(last)!;
	return Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => `${stem}${Number(from) + index}`);
}

export function citationsIn(file: string, source: string): Citation[] {
	// Most files cite nothing, and need not be parsed.
	if (source.search(CITED) < 0) return [];
	const lineOf = lineNumbers(source);
	const quoted = [...source.matchAll(QUOTED)].map((match) => ({ id: match[1]!, file, line: lineOf(match.index) }));
	const cited = readableTexts(file, source)
		.filter(({ kind }) => kind !== "text")
		.flatMap(({ line, text }) =>
			[...text.matchAll(CITED)].flatMap((match) => {
				const at = line + text.slice(0, match.index).split("\n").length - 1;
				const ids = match[2] === undefined ? [match[1]!] : idsBetween(match[1]!, match[2]);
				return ids.map((id) => ({ id, file, line: at }));
			}),
		)
		.filter(({ id }) => !OTHERS.test(id));
	return [...cited, ...quoted];
}

/** `- **A1** …` in a list, `**P1.1** …` at the start of a paragraph; `P4` is the fourth section of the protocol. */
export function definitionsIn(file: string, source: string): string[] {
	const sections = file === "PROTOCOL.md" ? [...source.matchAll(/^## (\d+)\./gm)].map((match) => `P${match[1]}`) : [];
	return [...[...source.matchAll(DEFINED)].map((match) => match[1]!), ...sections];
}
