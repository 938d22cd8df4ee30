/** The text that a person wrote in a mail: out of its HTML, and without the quotation of our own mail. */

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

/** The text of a mail that has only HTML: quotations become lines with ">", as in mails that have text. */
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

const LINES_MAX = 3;
const CHARS_MAX = 300;

/**
 * Takes the quotation of our own mail off the end of a reply. When in doubt it stays: losing a person's words is worse than reading ours again. It
 * is certain when every line to the end is quoted and a mail program's own attribution stands in front of it. `me`: our address.
 */
export function withoutQuote(text: string, { isReply, me }: { isReply: boolean; me: string }): string {
	const whole = text.replace(/\r\n?/g, "\n").trim();
	const lines = whole.split("\n");
	let end = lines.length;
	while (end > 0 && isQuotedOrEmpty(lines[end - 1] ?? "")) end--;
	if (!isReply || !lines.slice(end).some((line) => line.startsWith(">"))) return whole;
	// "On …, … wrote:" may be broken into several lines, and is a separate paragraph.
	for (let size = 1; size <= LINES_MAX && size <= end; size++) {
		const begin = end - size;
		const alone = begin === 0 || lines[begin - 1]?.trim() === "";
		if (!alone || !isAttribution(lines.slice(begin, end).join(" "), me)) continue;
		// A reply without other text is passed on unchanged.
		return lines.slice(0, begin).join("\n").trim() || whole;
	}
	return whole;
}

const isQuotedOrEmpty = (line: string): boolean => line.startsWith(">") || line.trim() === "";

const DATE = /(?<!\d)(?:19|20)\d\d(?!\d)|(?<!\d)\d{1,2}[./-]\d{1,2}[./-]\d{2}(?!\d)/;
const TIME = /(?<!\d)\d{1,2}[:.h]\d{2}(?!\d)/;
/** The words after an address: none, or a few words ("wrote", "a écrit", "님이 작성"). */
const ADDRESSED = /<\s*([^\s<>]+@[^\s<>]+?)\s*>\)?[^\d<>::]{0,25}[::]$/;
/** Written by programs that name only the person: "On 1/5/26 15:04, Bob wrote:", "Am 05.01.26 um 15:04 schrieb Bob:". */
const UNADDRESSED: readonly RegExp[] = [
	/^On .* wrote:$/i,
	/^(?:Am|Op|Den) .* (?:schrieb|schreef|skrev)\b[^\d:]*:$/i,
	/^(?:Le|El|Il|Em) .* (?:a écrit|escribió|ha scritto|escreveu) ?:$/i,
];

/** The line that a mail program writes above what it quotes: when, who, and a colon. Of mails that others wrote the agent may not know. */
function isAttribution(given: string, me: string): boolean {
	const said = given.replace(/\s+/g, " ").trim();
	if (said.length > CHARS_MAX || !DATE.test(said) || !TIME.test(said)) return false;
	const address = ADDRESSED.exec(said)?.[1];
	if (address !== undefined) return address.toLowerCase() === me.toLowerCase();
	return !said.includes("@") && UNADDRESSED.some((shape) => shape.test(said));
}
