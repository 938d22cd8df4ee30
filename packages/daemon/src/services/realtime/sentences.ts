/** Text that grows, cut into pieces that can be spoken: where a sentence ends, and before one gets too long. Pure. */

/** A shorter piece waits for more: "Dr." or "No." alone sound cut off. */
const CHARS_MIN = 12;
/** A longer one is cut where it has a space. */
const CHARS_MAX = 400;

/** The end of a sentence, with the quotes and brackets that may follow it; Latin punctuation counts only before a space. */
const END = /[.!?…]["'”’»)\]]*(?=\s)|[。！？]["'”’»）」』]*|\n/gu;

export interface Sentences {
	/** Returns the sentences that are complete now. Joined, all results are the text. */
	push(delta: string): string[];
	/** Returns the rest. */
	end(): string[];
}

/** The cuts do not depend on how the text came in pieces. */
export function createSentences(): Sentences {
	let rest = "";
	return {
		push(delta) {
			rest += delta;
			const found: string[] = [];
			for (let at = cutAt(rest); at > 0; at = cutAt(rest)) {
				found.push(rest.slice(0, at));
				rest = rest.slice(at);
			}
			return found;
		},
		end() {
			const left = rest === "" ? [] : [rest];
			rest = "";
			return left;
		},
	};
}

/** Where the first sentence ends for sure, whatever follows; 0 = not yet. */
function cutAt(text: string): number {
	END.lastIndex = 0;
	// One more character than the longest piece has been seen: nothing that comes can change the verdict.
	const isFull = text.length > CHARS_MAX;
	for (let match = END.exec(text); match; match = END.exec(text)) {
		const at = match.index + match[0].length;
		if (at > CHARS_MAX) break;
		// A closing quotation mark may still come.
		if (at === text.length && !match[0].endsWith("\n")) break;
		if (at >= CHARS_MIN) return at;
	}
	if (!isFull) return 0;
	const space = text.slice(0, CHARS_MAX).search(/\s\S*$/u);
	if (space >= CHARS_MIN) return space + 1;
	const isPair = /[\uD800-\uDBFF]/.test(text[CHARS_MAX - 1]!);
	return isPair ? CHARS_MAX - 1 : CHARS_MAX;
}
