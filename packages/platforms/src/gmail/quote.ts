/** Takes the quotation of our own mail off the end of a reply. When in doubt it stays: losing a person's words is worse than reading ours again. */

export interface Reply {
	/** The mail says that it answers another. */
	isReply: boolean;
	/** Our address. */
	me: string;
}

const LINES_MAX = 3;
const CHARS_MAX = 300;

/** A quotation is certain when every line to the end is quoted and a mail program's own attribution stands in front of it. */
export function withoutQuote(text: string, { isReply, me }: Reply): string {
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
