/** A text that grows piece by piece. Bytes outside of V8's heap: a piece and a link to it, kept for each of a million tokens, would keep the garbage collector busy. Knows no Nexus word. */

import { constants } from "node:buffer";

const BYTES_AT_FIRST = 256;
const UTF8_BYTES_PER_UNIT_MAX = 3;

export class GrowingText {
	#bytes = NOTHING;
	#used = 0;
	#length = 0;
	/** The first half of a surrogate pair that the last piece ended with: UTF-8 has no halves. */
	#half = "";
	/** As it was last asked for. */
	#whole: string | undefined = "";

	/** In UTF-16 units, as a string's. */
	get length(): number {
		return this.#length;
	}

	/** Throws a RangeError, as `+=` does, when no string could hold it. */
	push(piece: string): void {
		if (this.#length + piece.length > constants.MAX_STRING_LENGTH) throw new RangeError("Invalid string length");
		this.#length += piece.length;
		this.#whole = undefined;
		const text = this.#half + piece;
		const last = text.charCodeAt(text.length - 1);
		const isHalf = last >= 0xd800 && last <= 0xdbff;
		this.#half = isHalf ? text.slice(-1) : "";
		this.#reserve(this.#used + text.length * UTF8_BYTES_PER_UNIT_MAX);
		this.#used += this.#bytes.write(isHalf ? text.slice(0, -1) : text, this.#used);
	}

	/** A half that stays alone becomes U+FFFD. */
	toString(): string {
		this.#whole ??= this.#bytes.toString("utf8", 0, this.#used) + this.#half.toWellFormed();
		return this.#whole;
	}

	#reserve(size: number): void {
		if (size <= this.#bytes.length) return;
		const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#bytes.length, BYTES_AT_FIRST));
		this.#bytes.copy(larger, 0, 0, this.#used);
		this.#bytes = larger;
	}
}

const NOTHING = Buffer.alloc(0);
