/** Cuts text to a limit: into pieces that together are the whole, or to its beginning. Pure. */

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
