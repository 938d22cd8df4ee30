/** Writes a range of the source as a message that stands alone, with its fences whole. Only white space at the two ends is left out. */

import { type Container, type Fence, fenceOf, type MarkdownState, withoutContainers } from "./markdown-state.ts";
import type { Outline, OutlineLine } from "./outline.ts";

/** How much decoration a torn fence gets: all, no info string, or none at all where the limit leaves no room for it. */
export type Decoration = "full" | "plain" | "none";

export function standaloneText(outline: Outline, to: number, decoration: Decoration): string {
	if (to <= outline.from) return "";
	const parts = new LineCollector(outline, to, decoration);
	let first = parts.first();
	// The range begins with the line end of a line of code.
	if (first?.before.inLine && first.kind === "code" && first.textEnd <= first.start) first = parts.skip();
	if (first === undefined) return "";
	const torn = first.kind === "open" && first.before.inLine;
	const markdown = torn ? first.after : first.before;
	const fence = fenceOf(markdown);
	// A leading closer belongs to a block that an earlier message shows whole.
	if (first.kind === "close" || (torn && decoration !== "none")) parts.skip();
	if (fence !== undefined && decoration !== "none" && (torn || first.kind === "code")) {
		// The opener's last words are in no other message.
		parts.lead(openerOf(markdown, fence, torn ? "full" : decoration));
	}
	if (decoration === "full" && continuesTable(first)) parts.lead(headOf(markdown));
	return parts.text();
}

/** The row's table has its head in an earlier message. */
const continuesTable = ({ kind, before }: OutlineLine): boolean =>
	kind === "row" && before.leaf === "table" && !before.inLine && before.table !== undefined;

const headOf = ({ table = "", containers }: MarkdownState): string =>
	`${table}\n`.replace(/^(?=.)/gm, quotes(containers));

const quotes = (containers: readonly Container[]): string =>
	containers.map((each) => (each.kind === "quote" ? "> " : "")).join("");

function openerOf(markdown: MarkdownState, fence: Fence, decoration: Decoration): string {
	const info = decoration === "full" ? fence.info : "";
	return `${quotes(markdown.containers)}${" ".repeat(fence.indent)}${fence.mark.repeat(fence.length)}${info}\n`;
}

/** Writes the lines of one range. */
class LineCollector {
	readonly #outline: Outline;
	readonly #to: number;
	readonly #decoration: Decoration;
	readonly #inherited: readonly Container[];
	/** The inherited containers that are still open. */
	#carried: readonly Container[];
	/** Further columns to remove from the lines, in addition to the marks of inherited containers. */
	#extra = 0;
	/** A line of an inherited item is written, without the item's indentation: a later indented line could join it. */
	#shifted = false;
	#out = "";
	#index: number;

	constructor(outline: Outline, to: number, decoration: Decoration) {
		this.#outline = outline;
		this.#to = to;
		this.#decoration = decoration;
		this.#index = outline.indexAt(outline.from);
		const open = outline.lines[this.#index]?.before.containers ?? [];
		this.#inherited = open.map((each) => (each.fresh ? { ...each, fresh: false } : each));
		this.#carried = this.#inherited;
		outline.reach(to - 1);
	}

	first(): OutlineLine | undefined {
		const line = this.#outline.lines[this.#index];
		return line !== undefined && line.start < this.#to ? line : undefined;
	}

	skip(): OutlineLine | undefined {
		this.#index += 1;
		return this.first();
	}

	lead(text: string): void {
		this.#out = text;
	}

	text(): string {
		const body = this.#body();
		const before = this.#outline.lines[this.#index]?.before;
		const startsInLine = before?.inLine === true && before.leaf !== "indented";
		this.#out += this.#out === "" ? withoutLeadingBlank(body, startsInLine) : body;
		return this.#close();
	}

	#body(): string {
		const { source, lines } = this.#outline;
		const first = lines[this.#index];
		if (first === undefined) return "";
		const inItem = this.#inherited.some((each) => each.kind === "item");
		if (first.before.inLine || inItem || this.#decoration === "none") return this.#rewritten();
		const start = Math.max(first.start, this.#outline.from);
		return guard(first, source.slice(start, Math.max(start, this.#to)));
	}

	/** Writes line by line, without the indentation of items that began in an earlier message: deep lines would become indented code. */
	#rewritten(): string {
		const { source, lines } = this.#outline;
		let body = "";
		for (let at = this.#index; at < lines.length; at += 1) {
			const line = lines[at];
			if (line === undefined || line.start >= this.#to) break;
			const text = source.slice(line.start, Math.min(line.textEnd, this.#to));
			const ending = line.textEnd < Math.min(line.end, this.#to) ? "\n" : "";
			if (this.#decoration === "none" && line.kind === "close") continue;
			if (this.#decoration === "none" && line.kind === "open") {
				body += text.replace(/(?:`{3,}|~{3,})[ \t]*/, "") + ending;
				continue;
			}
			if (line.before.inLine) {
				body += quotes(this.#carried) + restOf(line, text) + ending;
				continue;
			}
			const left = fenceOf(line.before);
			const ended = left !== undefined && line.kind !== "code" && line.kind !== "close" && at > this.#index;
			// The end of the list item ended this fence; without the item's indentation the fence needs a closer.
			if (ended && this.#decoration !== "none" && line.before.containers.length <= this.#carried.length) {
				body += `${quotes(line.before.containers)}${left.mark.repeat(left.length)}\n`;
			}
			const own = line.lazy ? escaped(text.trimStart()) : this.#ownText(line, text);
			body += (at === this.#index ? guard(line, own) : own) + ending;
		}
		return body;
	}

	/** The line without the marks of inherited items. */
	#ownText(line: OutlineLine, text: string): string {
		const carried = this.#carried;
		const nested = line.before.containers.length > carried.length;
		if (!nested && fenceOf(line.before) === undefined) this.#extra = 0;
		const moved = carried.length > 0 || this.#extra > 0;
		const expand = moved && (nested || line.kind !== "code");
		const found = withoutContainers(carried, text, expand ? "expand" : "keep");
		const { rest } = found;
		const matched = Math.min(found.matched, line.matched);
		const indent = rest.length - rest.replace(/^ +/, "").length;
		const left = matched < carried.length && line.kind !== "blank";
		this.#carried = carried.slice(0, matched);
		// Re-indent lines that belonged to a list item cut off earlier, so they do not join the next item.
		if (left) this.#extra = indent < 4 && this.#shifted ? indent : 0;
		else if (line.matched <= this.#carried.length && line.kind !== "blank") this.#extra = Math.min(this.#extra, indent);
		if (line.kind !== "blank" && line.kind !== "code" && line.kind !== "close") this.#shifted = true;
		const apart = left && (/^ *>/.test(rest) || (NO_INTERRUPTION.test(rest) && line.kind !== "text")) ? "\n" : "";
		const surplus = Math.max(0, indent - leastIndent(line, rest));
		return apart + quotes(this.#carried) + rest.slice(Math.min(surplus, this.#extra));
	}

	#close(): string {
		const last = this.#outline.lineAt(this.#to - 1);
		const markdown = this.#outline.stateAt(this.#to);
		const torn = last !== undefined && this.#to < last.end && last.kind === "close";
		const fence = torn ? undefined : fenceOf(markdown);
		if (fence === undefined || this.#decoration === "none") return withoutTrailingBlank(this.#out);
		if (last?.kind === "open") return this.#withoutOpener(last);
		const before = this.#out.endsWith("\n") || this.#out === "" ? "" : "\n";
		const kept = this.#stillOpen();
		const inner = markdown.containers.slice(kept);
		const own = inner.map((each) => (each.kind === "quote" ? "> " : " ".repeat(each.indent))).join("");
		return `${this.#out}${before}${quotes(markdown.containers.slice(0, kept))}${own}${fence.mark.repeat(fence.length)}`;
	}

	/** Counts the inherited containers that are open at the end of the range. */
	#stillOpen(): number {
		let open = this.#inherited.length;
		for (const line of open > 0 ? this.#outline.lines.slice(this.#index) : []) {
			if (line.start >= this.#to) break;
			if (!line.lazy) open = Math.min(open, line.matched);
		}
		return open;
	}

	/** Drops an opener at the end of the range, because the next message opens the fence. A list marker before it stays. */
	#withoutOpener(opener: OutlineLine): string {
		const marks = /(?:`{3,}|~{3,})[^\r\n]*[\r\n]*$/.exec(this.#out);
		return withoutTrailingBlank(marks === null || opener.before.inLine ? this.#out : this.#out.slice(0, marks.index));
	}
}

/** List items that need an empty line between them and a paragraph. */
const NO_INTERRUPTION = /^ *(?:\d|[-+*][ \t]*$)/;

/** The end of a line whose beginning is in an earlier message. */
function restOf(line: OutlineLine, text: string): string {
	if (fenceOf(line.before) !== undefined) return text;
	return line.before.leaf === "indented" ? `    ${text}` : guard(line, text.trimStart());
}

/** Columns that a line must keep to stay indented code, or code that looks like a fence. */
function leastIndent(line: OutlineLine, rest: string): number {
	const deep = line.kind === "indented" || (line.kind === "code" && /^ {4,}[`~]/.test(rest));
	return deep ? 4 : 0;
}

/** Escapes text from the middle of a line or paragraph that would begin a list, quote, heading, fence or indented code. */
function guard(line: OutlineLine, text: string): string {
	const { inLine, leaf, containers } = line.before;
	if (fenceOf(line.before) !== undefined) return text;
	const [marks, rest] = inLine ? ["", text] : withoutQuotes(containers.slice(0, line.matched), text);
	const goesOn = leaf === "indented" || leaf === "paragraph";
	// Inside a paragraph or indented code, the parser begins a list only with the number 1.
	if (goesOn && line.kind === "item" && line.matched === containers.length) return marks + rest.replace(NUMBER, "$1\\");
	if (line.kind !== "text") return text;
	if (leaf === "paragraph") return marks + escaped(inLine ? rest : rest.trimStart());
	return marks + (inLine || (goesOn && /^ {0,3}[^ \t]/.test(rest)) ? escaped(rest) : rest);
}

/** Separates the quote marks at the start of a text from its content. */
function withoutQuotes(containers: readonly Container[], text: string): [marks: string, rest: string] {
	let at = 0;
	for (const { kind } of containers) {
		if (kind === "quote") at += /^[ \t]*> ?/.exec(text.slice(at))?.[0].length ?? 0;
	}
	return [text.slice(0, at), text.slice(at)];
}

const NUMBER = /^((?:[ \t>]|[-+*][ \t]|1[.)][ \t])*(?!1[.)])\d{1,9})(?=[.)](?:[ \t]|$))/;

const escaped = (text: string): string => (startsBlock(text) ? text.replace(/^([ \t]*\d*)/, "$1\\") : text);

const STARTER =
	/^(?:\d{1,9}[.)](?:\s|$)|[-+*](?:\s|$)|>|#{1,6}(?:\s|$)|`{3}|~{3}|([-_*])(?:[ \t]*\1){2,}[ \t]*(?:[\r\n]|$))/;

/** Whether text would begin a block if it stood at the start of a line. */
export const startsBlock = (text: string): boolean => STARTER.test(text.slice(0, 100).replace(/^[ \t]+/, ""));

function withoutLeadingBlank(text: string, inLine: boolean): string {
	let kept = 0;
	for (let at = 0; at < text.length; at += 1) {
		const code = text.charCodeAt(at);
		if (code === 10 || code === 13) kept = at + 1;
		else if (code !== 32 && code !== 9) return text.slice(inLine ? at : kept);
	}
	return "";
}

function withoutTrailingBlank(text: string): string {
	let end = text.length;
	while (end > 0 && " \t\r\n".includes(text[end - 1] ?? "x")) end -= 1;
	return text.slice(0, end);
}
