/** Names and ids come from models, platforms and callers: in what is told of them they are short, and one line. */

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

/** Nearly all of them. */
const PLAIN = /^[ -~]*$/;

/** At most so many bytes of UTF-8, on a character's border. */
export function clipped(text: string, bytesMax: number): string {
	if (text.length <= bytesMax && PLAIN.test(text)) return text;
	const plain = text.search(CONTROL) < 0 ? text : text.replaceAll(CONTROL, "\uFFFD");
	if (plain.length * 3 <= bytesMax || Buffer.byteLength(plain) <= bytesMax) return plain.toWellFormed();
	return cut(plain.toWellFormed(), bytesMax - ELLIPSIS_BYTES) + ELLIPSIS;
}

const ELLIPSIS = "…";
const ELLIPSIS_BYTES = 3;

function cut(text: string, bytesMax: number): string {
	const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, bytesMax)));
	return text.slice(0, read);
}
