/** Measures a text in the unit in which a platform counts. */

import type { LengthUnit } from "../port.ts";
import { graphemes } from "./boundary.ts";

export function lengthOf(text: string, unit: LengthUnit): number {
	switch (unit) {
		case "utf16":
			return text.length;
		case "codepoint":
			return countOf(text);
		case "grapheme":
			return IS_PLAIN.test(text) ? text.length : countOf(graphemes().segment(text));
		case "utf8":
			return Buffer.byteLength(text, "utf8");
		case "sms":
			return septets(text) ?? text.length;
		default:
			throw new TypeError(`${String(unit satisfies never)} is not a unit of length`);
	}
}

function countOf(characters: Iterable<unknown>): number {
	let count = 0;
	for (const _ of characters) count += 1;
	return count;
}

/** Every character is a grapheme. A carriage return is excluded, because it forms one grapheme with a line feed. */
const IS_PLAIN = /^[\t\n -~]*$/;

/** GSM 03.38: one septet each. */
const BASIC = new Set(
	"@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
);
/** GSM 03.38 extension: two septets each, the escape included. */
const EXTENSION = new Set("\f^{}\\[~]|€");

/** Undefined if one character is not in the alphabet, because then the whole message is sent as UCS-2. */
function septets(text: string): number | undefined {
	let count = 0;
	for (const character of text) {
		if (BASIC.has(character)) count += 1;
		else if (EXTENSION.has(character)) count += 2;
		else return undefined;
	}
	return count;
}
