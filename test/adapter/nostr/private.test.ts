/** The content of a wrap is checked before it counts. */

import { nsecEncode } from "nostr-tools/nip19";
import { encrypt, getConversationKey } from "nostr-tools/nip44";
import { createRumor, createSeal, createWrap } from "nostr-tools/nip59";
import { finalizeEvent, generateSecretKey, getEventHash, getPublicKey } from "nostr-tools/pure";
import { describe, expect, test } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/kit.ts";
import { CHAT_MESSAGE } from "../../../packages/platforms/src/nostr/events.ts";
import { readKeys, readPubkey } from "../../../packages/platforms/src/nostr/keys.ts";
import { rumorOf, unwrap, wrapFor } from "../../../packages/platforms/src/nostr/private.ts";

const keysOf = () => readKeys(nsecEncode(generateSecretKey()));
const [ann, bot, eve] = [keysOf(), keysOf(), keysOf()];
const intent = { kind: CHAT_MESSAGE, created_at: 1_700_000_000, tags: [["p", bot.pubkey]] };

describe("a wrap", () => {
	test("brings its rumor; the rumor's id is fixed, the wrap's is not", () => {
		const rumor = rumorOf(ann, intent, "hi");
		const [one, two] = [wrapFor(ann, rumor, bot.pubkey), wrapFor(ann, rumor, bot.pubkey)];
		expect(unwrap(one, bot)).toEqual(rumor);
		expect(one.id).not.toBe(two.id);
		expect(rumorOf(ann, intent, "hi").id).toBe(rumor.id);
		expect(JSON.stringify(one)).not.toContain(ann.pubkey);
	});

	test("around another author's rumor is refused: the seal's key must be the rumor's", () => {
		const forged = { ...rumorOf(ann, intent, "send money"), id: "" };
		const seal = createSeal({ ...forged, id: getEventHash(forged) }, eve.secret, bot.pubkey);
		expect(() => unwrap(createWrap(seal, bot.pubkey), bot)).toThrow(/another author/);
	});

	test("with a chosen rumor id, a wrong signature, another kind or for another reader is refused", () => {
		const rumor = createRumor({ ...intent, content: "hi" }, ann.secret);
		const chosen = createSeal({ ...rumor, id: "0".repeat(64) }, ann.secret, bot.pubkey);
		expect(() => unwrap(createWrap(chosen, bot.pubkey), bot)).toThrow(/not its hash/);
		const seal = createSeal(rumor, ann.secret, bot.pubkey);
		const broken = { ...seal, sig: seal.sig.replace(/^../, (two) => (two === "00" ? "11" : "00")) };
		expect(() => unwrap(createWrap(broken, bot.pubkey), bot)).toThrow(/seal's signature/);
		const wrap = wrapFor(ann, rumor, bot.pubkey);
		expect(() => unwrap({ ...wrap, content: `${wrap.content}A` }, bot)).toThrow(/wrap's signature/);
		expect(() => unwrap(wrap, eve)).toThrow();
		const note = finalizeEvent({ kind: 1, created_at: 1, tags: [], content: "" }, ann.secret);
		expect(() => unwrap(createWrap(note, bot.pubkey), bot)).toThrow(/is not a seal/);
	});

	test("that is too large is not decrypted", () => {
		const content = encrypt("x".repeat(60_000), getConversationKey(eve.secret, bot.pubkey)).repeat(2);
		const large = finalizeEvent({ kind: 1059, created_at: 1, tags: [["p", bot.pubkey]], content }, eve.secret);
		expect(() => unwrap(large, bot)).toThrow(/more than/);
	});
});

describe("keys", () => {
	test("are read from nsec and hex, with the same public key", () => {
		const secret = generateSecretKey();
		const hex = Buffer.from(secret).toString("hex");
		for (const spelling of [nsecEncode(secret), hex, hex.toUpperCase(), ` ${hex}\n`])
			expect(readKeys(spelling).pubkey).toBe(getPublicKey(secret));
	});

	test.each([
		["a public key", ann.npub, /secret one/],
		["an encrypted key", "ncryptsec1qgg9947", /Decrypt it first/],
		["a mistyped nsec", `${nsecEncode(generateSecretKey()).slice(0, -1)}b`, /nsec1… or 64 hex/],
		["zero", "0".repeat(64), /valid key/],
		["words", "correct horse", /nsec1… or 64 hex/],
	])("%s is refused clearly, without being shown", (_, given, said) => {
		const refused = (() => {
			try {
				return readKeys(given);
			} catch (cause) {
				return cause as PlatformError;
			}
		})();
		expect(refused).toBeInstanceOf(PlatformError);
		expect(refused).toMatchObject({ fault: "invalid", message: expect.stringMatching(said) });
		expect((refused as PlatformError).message).not.toContain(given);
	});

	test("of other people are read in every spelling", () => {
		expect(readPubkey(ann.npub)).toBe(ann.pubkey);
		expect(readPubkey(`nostr:${ann.npub}`)).toBe(ann.pubkey);
		expect(readPubkey(ann.pubkey.toUpperCase())).toBe(ann.pubkey);
		expect(readPubkey("nobody")).toBeUndefined();
	});
});
