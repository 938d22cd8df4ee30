/** The names of one chat on Nostr. The daemon loads this file, so it needs no library. */

import type { Target } from "@nexus-stream/adapter";

/** A public thread is named by its first event, a private room of several people by its members. */
export const THREAD = "thread:";
export const ROOM = "room:";

const ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const KEY_BYTES = 32;
const CHECKSUM_CHARS = 6;

/** A person is written as npub or as hex. */
export const chatNames = ({ to }: Target): readonly string[] => {
	const name = to.replace(/^nostr:/, "").toLowerCase();
	return [name.startsWith("npub1") ? (hexOf(name.slice("npub1".length)) ?? name) : name];
};

/** The bytes of a bech32 text, five bits a letter; comparing names needs no checksum. */
function hexOf(letters: string): string | undefined {
	let bits = "";
	for (const letter of letters.slice(0, -CHECKSUM_CHARS)) {
		const value = ALPHABET.indexOf(letter);
		if (value < 0) return undefined;
		bits += value.toString(2).padStart(5, "0");
	}
	const bytes = bits.match(/.{8}/g) ?? [];
	if (bytes.length !== KEY_BYTES) return undefined;
	return bytes.map((byte) => Number.parseInt(byte, 2).toString(16).padStart(2, "0")).join("");
}
