/** The account's key, and the spellings of other people's. */

import { PlatformError } from "@nexus-stream/adapter";
import { decode, npubEncode } from "nostr-tools/nip19";
import { getPublicKey } from "nostr-tools/pure";

export interface Keys {
	secret: Uint8Array;
	/** Hex, as everywhere on the wire. */
	pubkey: string;
	/** For people. */
	npub: string;
}

const HEX_KEY = /^[0-9a-f]{64}$/;

/** The value itself is never part of the error. */
export function readKeys(given: string): Keys {
	try {
		const secret = readSecret(given.trim());
		const pubkey = getPublicKey(secret);
		return { secret, pubkey, npub: npubEncode(pubkey) };
	} catch {
		throw new PlatformError("invalid", wrongKey(given.trim()));
	}
}

function readSecret(text: string): Uint8Array {
	if (HEX_KEY.test(text.toLowerCase())) return Uint8Array.from(Buffer.from(text, "hex"));
	const { type, data } = decode(text);
	if (type !== "nsec") throw new Error("no secret key");
	return data;
}

function wrongKey(text: string): string {
	if (text.startsWith("npub1")) return "secret_key is a public key (npub1…). It must be the secret one: nsec1….";
	if (text.startsWith("ncryptsec1")) return "secret_key is encrypted (ncryptsec1…). Decrypt it first, then set nsec1….";
	return "secret_key must be nsec1… or 64 hex digits, and a valid key.";
}

/** A public key as hex, from hex, npub or nprofile; undefined when it is invalid. */
export function readPubkey(text: string): string | undefined {
	const plain = text.trim().replace(/^nostr:/, "");
	if (HEX_KEY.test(plain.toLowerCase())) return plain.toLowerCase();
	try {
		const decoded = decode(plain);
		if (decoded.type === "npub") return decoded.data;
		return decoded.type === "nprofile" ? decoded.data.pubkey : undefined;
	} catch {
		return undefined;
	}
}
