/** Names and ids come from models, platforms and callers: records hold them shortened, and on one line. */

import { clipBytes } from "../../std/clip.ts";

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

/** Nearly all of them. */
const PLAIN = /^[ -~]*$/;

/** At most so many bytes of UTF-8, on a character's border. */
export function clipped(text: string, bytesMax: number): string {
	if (text.length <= bytesMax && PLAIN.test(text)) return text;
	const plain = text.search(CONTROL) < 0 ? text : text.replaceAll(CONTROL, "\uFFFD");
	return clipBytes(plain, bytesMax);
}
