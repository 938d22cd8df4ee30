/** Measures a text in the unit in which a platform counts. */

import type { LengthUnit } from "../port.ts";
import { graphemes } from "./boundary.ts";

export function lengthOf(text: string, unit: LengthUnit): number {
	switch (unit) {
		case "utf16":
			return text.length;
		case "codepoint":
			return codepoints(text);
		case "grapheme":
			return graphemeCount(text);
		case "utf8":
			return Buffer.byteLength(text, "utf8");
		case "sms":
			return septets(text) ?? text.length;
		default: {
			const unknown: never = unit;
			throw new TypeError(`${String(unknown)} is not a unit of length`);
		}
	}
}

function codepoints(text: string): number {
	let count = 0;
	for (const _ of text) count += 1;
	return count;
}

function graphemeCount(text: string): number {
	if (isPlainAscii(text)) return text.length;
	let count = 0;
	for (const _ of graphemes().segment(text)) count += 1;
	return count;
}

/** Every character is a grapheme. A carriage return is excluded, because it forms one grapheme with a line feed. */
function isPlainAscii(text: string): boolean {
	for (let at = 0; at < text.length; at += 1) {
		const code = text.charCodeAt(at);
		if (code > 126 || code === 13) return false;
	}
	return true;
}

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
