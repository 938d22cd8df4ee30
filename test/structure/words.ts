/** Words and turns that make a reader stop, with the advice for each. */

import { FOLDERS, filesBelow, isBelow } from "./files.ts";
import { READABLE, type Readable, readableTexts } from "./readable.ts";

interface Ban {
	readonly pattern: RegExp;
	readonly advice: string;
}

const word = (pattern: string): RegExp => new RegExp(`\\b(?:${pattern.replaceAll(" ", "\\s+")})\\b`, "gi");

const BANS: readonly Ban[] = [
	{ pattern: word("somebody"), advice: "name the agent: the caller, a reader, the operator, another process" },
	{ pattern: word("nobody"), advice: "name the agent and negate the verb: 'no reader', 'the run has no approver'" },
	{ pattern: word("whoever"), advice: "name the agent: the caller, the sender, the process that …" },
	{
		pattern: /\btold\b(?!\s+apart\b)/gi,
		advice: "say who reports, sends, notifies or records what: 'the adapter reports …'",
	},
	{ pattern: word("heard"), advice: "received, reported, or the noun: 'no response', 'the last message'" },
	{ pattern: word("beside"), advice: "with, in addition to, in parallel, next to, in the same transaction" },
	{ pattern: word("anew"), advice: "again, from the start, restarted, re-created" },
	{ pattern: word("asides?"), advice: "attachment; for a file: renamed, moved" },
	{ pattern: word("owed"), advice: "pending, unfinished, planned: 'pending deliveries'" },
	{ pattern: word("for ever"), advice: "forever, permanently, without a limit, for good" },
	{
		pattern: /(?<!\bthere\s+)\bis\s+no\b(?=\s+\w)(?!\s+longer\b)/gi,
		advice: "'is not a …', 'invalid …', 'there is no …', or a verb: 'has no', 'needs no'",
	},
	{ pattern: /(?<!\bthere\s+)\bis\s+none\b/gi, advice: "'is dropped', 'does not count', 'there is none'" },
	{ pattern: word("of its own"), advice: "its own …, a separate …, dedicated" },
	{ pattern: word("goes on"), advice: "continues, resumes, keeps running" },
	{ pattern: word("lets? in|letting in"), advice: "approved, admitted, accepted, allowed" },
];

const OPENING = /^\s*(What(?:ever)?|Who|Whose|Whoever|Of|Those|One that)\b/;
const OPENING_ADVICE = "begin with the noun or with the verb of what happens: 'Cache key: …', 'Resends the code …'";

interface Exception {
	/** A path or its beginning. */
	readonly file: string;
	readonly word: string;
	readonly reason: string;
}

/** Words that are right in their place. */
export const EXCEPTIONS: readonly Exception[] = [
	{ file: "test/structure/words", word: "*", reason: "the list itself and its examples" },
	{ file: "test/browser/agents.test.ts", word: "somebody", reason: "quotes examples/agents/script.yaml" },
	{ file: "test/cli/example-agents.test.ts", word: "somebody", reason: "quotes examples/agents/script.yaml" },
	{
		file: "test/adapter/slack/inbound.test.ts",
		word: "somebody",
		reason: "quotes the text of a forwarded message without an author",
	},
];

export interface Finding {
	readonly file: string;
	readonly line: number;
	readonly word: string;
	readonly advice: string;
	/** The line of the file that the word is in. */
	readonly text: string;
}

/** `at` is a position in the text. */
const lineAt = ({ line, text }: Readable, at: number): number => line + text.slice(0, at).split("\n").length - 1;

function findingsIn(readable: Readable): Omit<Finding, "file" | "text">[] {
	const opening = readable.kind === "comment" ? OPENING.exec(readable.text)?.[1] : undefined;
	const found = BANS.flatMap(({ pattern, advice }) =>
		[...readable.text.matchAll(pattern)].map((match) => ({
			line: lineAt(readable, match.index),
			word: match[0].replace(/\s+/g, " ").toLowerCase(),
			advice,
		})),
	);
	if (opening === undefined) return found;
	const line = lineAt(readable, readable.text.indexOf(opening));
	return [{ line, word: `a comment begins with ${opening}`, advice: OPENING_ADVICE }, ...found];
}

const isException = ({ file, word }: Finding): boolean =>
	EXCEPTIONS.some((entry) => file.startsWith(entry.file) && (entry.word === word || entry.word === "*"));

export function wordsIn(file: string, source: string): Finding[] {
	const lines = source.split("\n");
	return readableTexts(file, source)
		.flatMap(findingsIn)
		.map((finding) => ({ file, ...finding, text: lines[finding.line - 1]?.trim() ?? "" }))
		.filter((finding) => !isException(finding))
		.toSorted((a, b) => a.line - b.line);
}

const isOurs = (file: string): boolean => !isBelow(file, [...FOLDERS.generated, ...FOLDERS.foreign]);

/** Findings in all readable files. */
export const wordsBelow = (root: string): Finding[] =>
	[...filesBelow(root, READABLE)].filter(([file]) => isOurs(file)).flatMap(([file, source]) => wordsIn(file, source));

export const describeFinding = ({ file, line, word, advice, text }: Finding): string =>
	`${file}:${line}: "${word}" → ${advice}\n    ${text}`;
