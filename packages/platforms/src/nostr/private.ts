/** NIP-17: a message to few people, as a rumor in a seal in a wrap for each of them. Relays learn neither who writes nor when. */

import type { Event } from "nostr-tools/core";
import { decrypt, getConversationKey } from "nostr-tools/nip44";
import { createRumor, createSeal, createWrap } from "nostr-tools/nip59";
import { getEventHash, verifyEvent } from "nostr-tools/pure";
import { GIFT_WRAP, type Intent } from "./events.ts";
import type { Keys } from "./keys.ts";

/** How far back wraps and seals are dated at most. */
export const BACKDATED_S = 2 * 24 * 60 * 60;

const SEAL = 13;
/** The limit of NIP-44: 65,535 bytes of text, padded, in base64. */
const PAYLOAD_CHARS_MAX = 90_000;

/** An event without a signature: the seal around it proves who wrote it. */
export type Rumor = Omit<Event, "sig">;

export const rumorOf = (keys: Keys, { kind, created_at, tags }: Omit<Intent, "text">, content: string): Rumor =>
	createRumor({ kind, created_at, tags, content }, keys.secret);

/** Each wrap has its own key and time; the rumor inside stays the same. */
export const wrapFor = (keys: Keys, rumor: Rumor, recipient: string): Event =>
	createWrap(createSeal(rumor, keys.secret, recipient), recipient);

/** Throws with the reason when anything about it is not as it says. */
export function unwrap(wrap: Event, { secret }: Keys): Rumor {
	if (wrap.kind !== GIFT_WRAP) throw new Error(`kind ${wrap.kind} is not a gift wrap`);
	if (!verifyEvent(wrap)) throw new Error("the wrap's signature is wrong");
	const seal = opened(wrap, secret) as Event;
	if (seal.kind !== SEAL) throw new Error(`kind ${String(seal.kind)} is not a seal`);
	if (!verifyEvent(seal)) throw new Error("the seal's signature is wrong");
	const rumor = opened(seal, secret) as Rumor;
	// Anybody can put another's name into a rumor.
	if (rumor.pubkey !== seal.pubkey) throw new Error("the rumor names another author than its seal");
	// Duplicates are recognised by this id, so its sender may not choose it.
	if (rumor.id !== getEventHash(rumor)) throw new Error("the rumor's id is not its hash");
	return rumor;
}

function opened({ content, pubkey }: Event, secret: Uint8Array): unknown {
	if (content.length > PAYLOAD_CHARS_MAX) throw new Error(`more than ${PAYLOAD_CHARS_MAX} characters`);
	return JSON.parse(decrypt(content, getConversationKey(secret, pubkey)));
}
