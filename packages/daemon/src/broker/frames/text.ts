/** Text of answers: cut into pieces or to a length, and put together piece by piece. Knows no Nexus word. */

import { constants } from "node:buffer";

/** Most bytes that one UTF-16 unit takes. */
export const UTF8_BYTES_PER_UNIT_MAX = 3;

/** Pieces of at most `bytesMax` UTF-8 bytes; never between the halves of a surrogate pair. */
export function piecesOf(text: string, bytesMax: number): string[] {
	if (text.length * UTF8_BYTES_PER_UNIT_MAX <= bytesMax || Buffer.byteLength(text) <= bytesMax) return [text];
	const step = Math.max(2, Math.floor(bytesMax / UTF8_BYTES_PER_UNIT_MAX));
	const pieces: string[] = [];
	for (let at = 0; at < text.length; ) {
		const end = at + step;
		const high = text.charCodeAt(end - 1);
		const cut = end < text.length && high >= 0xd800 && high <= 0xdbff ? end - 1 : end;
		pieces.push(text.slice(at, cut));
		at = cut;
	}
	return pieces;
}

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const BASE64_QUANTUM = 4;

/** Content whose payload is the text itself; any other is base64 or a data URL. */
export const isTextual = (contentType: string): boolean => /^text\/|[/+]json\b/i.test(contentType);

/** Like `piecesOf`, but base64 is cut between whole quanta, so that every piece decodes alone (P1.18). */
export function partPiecesOf(payload: string, contentType: string, bytesMax: number): string[] {
	if (payload.length <= bytesMax / UTF8_BYTES_PER_UNIT_MAX) return [payload];
	if (isTextual(contentType)) return piecesOf(payload, bytesMax);
	const binary = payload.replace(/\s+/g, "");
	if (!BASE64.test(binary)) return piecesOf(payload, bytesMax);
	const step = Math.max(BASE64_QUANTUM, bytesMax - (bytesMax % BASE64_QUANTUM));
	const pieces: string[] = [];
	for (let at = 0; at < binary.length; at += step) pieces.push(binary.slice(at, at + step));
	return pieces;
}

/** A value whose JSON is too long becomes the beginning of that JSON, with a note. */
export function clipped(value: unknown, charsMax: number): unknown {
	if (typeof value === "string") return clippedText(value, charsMax);
	const text = JSON.stringify(value) ?? "null";
	return text.length <= charsMax ? value : clippedText(text, charsMax);
}

/** Well-formed: not every reader takes half of a surrogate pair. */
export function clippedText(text: string, charsMax: number): string {
	if (text.length <= charsMax) return text.toWellFormed();
	return `${text.slice(0, charsMax).toWellFormed()}… [cut: ${text.length} characters in all]`;
}

const BYTES_AT_FIRST = 256;

/**
 * A text that grows piece by piece. Bytes outside of V8's heap: a piece and a link to it, kept for each of a million tokens, would keep
 * the garbage collector busy.
 */
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
