/** Local models write their reasoning as `<think>` at the start of the text: split from the answer, piece by piece. */

const OPEN = "<think>";
const CLOSE = "</think>";

export interface ReplyDelta {
	type: "text" | "reasoning";
	delta: string;
}

/** Splits one message. */
export interface ThinkSplitter {
	push(delta: string): readonly ReplyDelta[];
	/** Returns the held text when the message ends. */
	end(): readonly ReplyDelta[];
}

export function thinkSplitter(): ThinkSplitter {
	let where: "start" | "thinking" | "after" | "text" = "start";
	/** Undecided text: white space at the start, or the beginning of a tag. */
	let held = "";

	function push(delta: string): readonly ReplyDelta[] {
		if (where === "text") return delta === "" ? [] : [{ type: "text", delta }];
		held += delta;
		switch (where) {
			case "start":
				return start();
			case "thinking":
				return thinking();
			default:
				return after();
		}
	}

	function start(): readonly ReplyDelta[] {
		const body = held.trimStart();
		if (body.startsWith(OPEN)) {
			where = "thinking";
			held = body.slice(OPEN.length);
			return thinking();
		}
		if (OPEN.startsWith(body)) return [];
		return plain(held);
	}

	function thinking(): readonly ReplyDelta[] {
		const at = held.indexOf(CLOSE);
		const end = at < 0 ? held.length - partOf(CLOSE, held) : at;
		const pieces = some("reasoning", held.slice(0, end));
		held = held.slice(at < 0 ? end : at + CLOSE.length);
		if (at < 0) return pieces;
		where = "after";
		return [...pieces, ...after()];
	}

	/** The blank lines between the reasoning and the answer belong to neither. */
	function after(): readonly ReplyDelta[] {
		held = held.trimStart();
		return held === "" ? [] : plain(held);
	}

	function plain(text: string): readonly ReplyDelta[] {
		where = "text";
		held = "";
		return some("text", text);
	}

	return {
		push,
		end() {
			const rest = held;
			held = "";
			return where === "thinking" ? some("reasoning", rest) : where === "start" ? some("text", rest) : [];
		},
	};
}

/** The text of a finished message without its reasoning, as the model is given it back. */
export function withoutThinking(text: string): string {
	const splitter = thinkSplitter();
	return [...splitter.push(text), ...splitter.end()].map(({ type, delta }) => (type === "text" ? delta : "")).join("");
}

const some = (type: ReplyDelta["type"], delta: string): ReplyDelta[] => (delta === "" ? [] : [{ type, delta }]);

/** How many characters at the end of a text may be the beginning of a tag. */
function partOf(tag: string, text: string): number {
	for (let length = Math.min(tag.length - 1, text.length); length > 0; length--)
		if (text.endsWith(tag.slice(0, length))) return length;
	return 0;
}
