/** Reads JSON that a client sent, unless taking it apart would cost more than it is worth. */

import { isUtf8 } from "node:buffer";
import { NexusError } from "@nexus-stream/protocol";
import type { EdgeLimits } from "../port.ts";

export type JsonLimits = Pick<EdgeLimits, "bodyValuesMax" | "bodyDepthMax">;

const utf8 = new TextDecoder();

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OBJECT, ARRAY, OBJECT_END, ARRAY_END] = [0x7b, 0x5b, 0x7d, 0x5d];

/** Throws `invalid` for text that is not JSON, or that has more values or levels than anything that is asked for here. */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): unknown {
	const text = jsonText(bytes, limits);
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw new NexusError("invalid", `body is not JSON: ${(cause as Error).message}`, { cause });
	}
}

/** The text, once it is known to be worth parsing. */
export function jsonText(bytes: Uint8Array, limits: JsonLimits): string {
	// Decoding would put U+FFFD in place of bytes that are not UTF-8: the text would be another one than was sent.
	if (!isUtf8(bytes)) throw new NexusError("invalid", "body is not UTF-8");
	checkStructure(bytes, limits);
	return utf8.decode(bytes);
}

/** Every value but the first follows a comma or opens an object or array, so counting those bounds the values. */
function checkStructure(bytes: Uint8Array, { bodyValuesMax, bodyDepthMax }: JsonLimits): void {
	let values = 1;
	let depth = 0;
	for (let at = 0; at < bytes.length; at++) {
		const byte = bytes[at];
		if (byte === QUOTE) at = endOfString(bytes, at);
		else if (byte === COMMA) values++;
		else if (byte === OBJECT || byte === ARRAY) {
			values++;
			depth++;
		} else if (byte === OBJECT_END || byte === ARRAY_END) depth--;
		if (depth > bodyDepthMax) throw new NexusError("invalid", `body is nested deeper than ${bodyDepthMax} levels`);
		if (values > bodyValuesMax) throw new NexusError("invalid", `body has more than ${bodyValuesMax} values`);
	}
}

/** Where its closing quote is, or the end of what was sent. */
function endOfString(bytes: Uint8Array, from: number): number {
	for (let at = bytes.indexOf(QUOTE, from + 1); at !== -1; at = bytes.indexOf(QUOTE, at + 1)) {
		let slashes = 0;
		while (bytes[at - 1 - slashes] === BACKSLASH) slashes++;
		if (slashes % 2 === 0) return at;
	}
	return bytes.length;
}
