/** Tracks whether a text that arrives in chunks is inside a code fence, where no message should end. */

export interface FenceWatch {
	push(text: string): void;
	/** A new text begins. */
	reset(): void;
	readonly inside: boolean;
}

/** A fence after quote and list marks; the second group is the info string. */
const FENCE = /^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$/;
/** A fence is recognised by the beginning of its line. */
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
