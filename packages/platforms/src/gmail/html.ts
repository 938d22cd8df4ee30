/** The text of a mail that has only HTML: quotations become lines with ">", as in mails that have text. */

import { own } from "@nexus-stream/protocol/own";

const ENTITIES: Readonly<Record<string, string>> = {
	amp: "&",
	lt: "<",
	gt: ">",
	quot: '"',
	apos: "'",
	nbsp: " ",
	"#39": "'",
};

/** Nothing of these is shown. */
const HIDDEN: ReadonlySet<string> = new Set(["style", "script", "head", "title"]);
const BREAKING: ReadonlySet<string> = new Set(["p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6"]);
const TAG = /<(\/?)([a-z][a-z0-9]*)\b[^<>]*>|<!--|<![^<>]*>/gi;
/** More levels of quotation are shown as this many. */
const LEVELS_MAX = 5;

export function textOf(html: string): string {
	const lines = [""];
	let quotes = 0;
	let hidden = false;
	const feed = () => void lines.push(quotes > 0 ? `${">".repeat(Math.min(quotes, LEVELS_MAX))} ` : "");
	const say = (text: string) => {
		if (!hidden) lines.push((lines.pop() ?? "") + decoded(text.replace(/\s+/g, " ")));
	};
	const tags = new RegExp(TAG);
	let at = 0;
	for (let tag = tags.exec(html); tag; tag = tags.exec(html)) {
		say(html.slice(at, tag.index));
		const closes = tag[1] === "/";
		const name = tag[2]?.toLowerCase() ?? "";
		if (tag[0] === "<!--") tags.lastIndex = behind(html, "-->", tag.index);
		else if (HIDDEN.has(name)) hidden = !closes;
		else if (name === "blockquote") {
			quotes = Math.max(0, quotes + (closes ? -1 : 1));
			// A quotation is a separate paragraph.
			lines.push("");
			feed();
		} else if (name === "br" || (closes && BREAKING.has(name))) feed();
		at = tags.lastIndex;
	}
	say(html.slice(at));
	const text = lines.map((line) => line.trim()).join("\n");
	return text.replace(/\n{3,}/g, "\n\n").trim();
}

function behind(html: string, mark: string, from: number): number {
	const found = html.indexOf(mark, from);
	return found < 0 ? html.length : found + mark.length;
}

const decoded = (text: string): string =>
	text.replace(/&(#?\w{1,8});/g, (entity, name: string) => own(ENTITIES, name) ?? entity);
