/** Whether a text that comes in pieces is inside a code fence, where no message should end. */

export interface FenceWatch {
	push(text: string): void;
	/** A new text begins. */
	reset(): void;
	readonly inside: boolean;
}

/** Behind quote and list marks; the second group is what an opener says about the code. */
const FENCE = /^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$/;
/** What tells a fence stands at the beginning of its line. */
const LINE_CHARS_MAX = 200;

export function createFenceWatch(): FenceWatch {
	let line = "";
	let open: string | undefined;
	const read = (whole: string) => {
		const [, mark = "", info = ""] = FENCE.exec(whole) ?? [];
		if (mark === "") return;
		if (open === undefined) open = mark.startsWith("`") && info.includes("`") ? undefined : mark;
		else if (mark.startsWith(open) && info.trim() === "") open = undefined;
	};
	return {
		push(text) {
			let from = 0;
			for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
				read(line + text.slice(from, end));
				line = "";
				from = end + 1;
			}
			if (line.length < LINE_CHARS_MAX) line += text.slice(from, from + LINE_CHARS_MAX);
		},
		reset() {
			line = "";
			open = undefined;
		},
		get inside() {
			return open !== undefined || FENCE.test(line);
		},
	};
}
