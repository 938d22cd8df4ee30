/** Finds the text that people read in a file: comments, sentences in strings, test titles, text of the page, and prose. */

import { isNode, lineNumbers, type Node, syntaxOf, walk } from "./syntax.ts";

export interface Readable {
	readonly line: number;
	readonly kind: "comment" | "text" | "title" | "prose";
	readonly text: string;
}

/** Shorter strings are mostly names and values. */
const SENTENCE_WORDS_MIN = 4;

/** Text between back-quotes is code. */
const withoutCode = (text: string): string => text.replace(/`[^`\n]*`/g, "`code`");

/** Leading stars are decoration. Line breaks stay, so that a finding has the line it is in. */
const commentText = (text: string): string => withoutCode(text.replace(/^[ \t]*\*+(?=\s|$)/gm, ""));

/** Comments on successive lines are one text. */
function* joined(lines: Iterable<{ line: number; text: string }>): Generator<Readable> {
	let open: { line: number; texts: string[] } | undefined;
	for (const { line, text } of lines) {
		if (open && line === open.line + open.texts.length) open.texts.push(text);
		else {
			if (open) yield { line: open.line, kind: "comment", text: commentText(open.texts.join("\n")) };
			open = { line, texts: [text] };
		}
	}
	if (open) yield { line: open.line, kind: "comment", text: commentText(open.texts.join("\n")) };
}

const TITLED = new Set(["describe", "it", "test"]);

/** `it`, `it.each(…)`, `describe.skipIf(…)`. */
function calledName(callee: unknown): string | undefined {
	if (!isNode(callee)) return undefined;
	if (callee.type === "Identifier") return callee.name as string;
	return calledName(callee.type === "MemberExpression" ? callee.object : callee.callee);
}

/** The words of a string or a template, without its values. */
function stringText(node: unknown): string | undefined {
	if (!isNode(node)) return undefined;
	if (node.type === "Literal" && typeof node.value === "string") return node.value.replaceAll("\n", " ");
	if (node.type === "TemplateLiteral") {
		// Raw, because an escaped line break is not a line of the file.
		const parts = node.quasis as { value: { raw: string } }[];
		return parts.map(({ value }) => value.raw.replace(/\\[nrt]/g, " ")).join("…");
	}
	return undefined;
}

const isSentence = (text: string): boolean => (text.match(/[A-Za-z][\w'’-]*/g) ?? []).length >= SENTENCE_WORDS_MIN;

function* codeTexts(file: string, source: string): Generator<Readable> {
	const lineOf = lineNumbers(source);
	const { program, comments } = syntaxOf(file, source);
	const lines: { line: number; text: string }[] = [];
	for (const { type, value, start } of comments) {
		if (type === "Line") lines.push({ line: lineOf(start), text: value });
		else yield { line: lineOf(start), kind: "comment", text: commentText(value) };
	}
	yield* joined(lines);

	const found: Readable[] = [];
	const add = (node: Node, kind: Readable["kind"], text: string) =>
		found.push({ line: lineOf(node.start), kind, text: withoutCode(text) });
	const titles = new Set<unknown>();
	walk(program, (node) => {
		if (node.type === "ImportDeclaration") return false;
		if (node.type === "CallExpression" && TITLED.has(calledName(node.callee) ?? "")) {
			const title = (node.arguments as Node[])[0];
			const text = stringText(title);
			if (title !== undefined && text !== undefined) {
				titles.add(title);
				add(title, "title", text);
			}
		} else if (node.type === "JSXText") add(node, "text", node.value as string);
		else if (!titles.has(node)) {
			const text = stringText(node);
			if (text !== undefined && isSentence(text)) add(node, "text", text);
		}
		return undefined;
	});
	yield* found;
}

/** Comments of languages without a parser here: CSS, protobuf, Python, YAML. */
function* plainComments(source: string, comment: RegExp): Generator<Readable> {
	const lineOf = lineNumbers(source);
	const lines: { line: number; text: string }[] = [];
	for (const match of source.matchAll(comment)) {
		const line = lineOf(match.index);
		if (/^(?:\/\*|""")/.test(match[0])) {
			yield { line, kind: "comment", text: commentText(match[0].replace(/^(?:\/\*|""")|(?:\*\/|""")$/g, "")) };
		} else lines.push({ line, text: match[1] ?? "" });
	}
	yield* joined(lines);
}

/** Code between fences counts too: people read its comments and texts. Addresses of links do not. */
function* proseTexts(source: string): Generator<Readable> {
	const text = source.replace(/\]\([^)\n]*\)/g, "]").replace(/^( {0,3}\[[^\]\n]+\]:).*$/gm, "$1");
	for (const match of text.matchAll(/(?:^.*\S.*\n?)+/gm)) {
		const line = text.slice(0, match.index).split("\n").length;
		yield { line, kind: "prose", text: withoutCode(match[0]) };
	}
}

export const READABLE = /\.(?:tsx?|mjs|css|proto|py|ya?ml|md)$/;

export function readableTexts(file: string, source: string): Readable[] {
	if (file.endsWith(".md")) return [...proseTexts(source)];
	if (file.endsWith(".css")) return [...plainComments(source, /\/\*[\s\S]*?\*\//g)];
	if (file.endsWith(".proto")) return [...plainComments(source, /\/\*[\s\S]*?\*\/|(?<!:)\/\/([^\n]*)/g)];
	if (file.endsWith(".py")) return [...plainComments(source, /"""[\s\S]*?"""|(?<=^|\s)#([^\n]*)/gm)];
	if (/\.ya?ml$/.test(file)) return [...plainComments(source, /(?<=^|\s)#([^\n]*)/gm)];
	return [...codeTexts(file, source)];
}
