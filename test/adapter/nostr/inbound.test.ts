import { nprofileEncode, nsecEncode } from "nostr-tools/nip19";
import { finalizeEvent, generateSecretKey } from "nostr-tools/pure";
import { describe, expect, test } from "vitest";
import {
	CHAT_MESSAGE,
	COMMENT,
	factTags,
	NOTE,
	THREAD_START,
	threadOf,
} from "../../../packages/platforms/src/nostr/events.ts";
import { readPublic, readRumor } from "../../../packages/platforms/src/nostr/inbound.ts";
import { readKeys } from "../../../packages/platforms/src/nostr/keys.ts";
import { rumorOf } from "../../../packages/platforms/src/nostr/private.ts";
import { toolText } from "../../../packages/platforms/src/nostr/streams.ts";

const keysOf = () => readKeys(nsecEncode(generateSecretKey()));
const [ann, bob, bot] = [keysOf(), keysOf(), keysOf()];
const OURS = `${"0".repeat(63)}1`;
const ROOT = "a".repeat(64);
const me = { pubkey: bot.pubkey, wrote: (id: string) => id === OURS };
const toUs = ["p", bot.pubkey];

const said = (kind: number, tags: string[][], content = "hello", from = ann) =>
	finalizeEvent({ kind, created_at: 1_700_000_000, tags, content }, from.secret);

describe("a public event as a message", () => {
	test("a note that names us: answered in its thread, in its kind", () => {
		const event = said(NOTE, [toUs, ["p", bob.pubkey]], `nostr:${bot.npub} what is this?`);
		expect(readPublic(event, me)).toEqual({
			eventId: event.id,
			from: { id: ann.pubkey, name: ann.npub },
			chat: { id: `thread:${event.id}`, type: "group" },
			text: "what is this?",
			mention: true,
			target: {
				to: `thread:${event.id}`,
				direct: false,
				reply_to: event.id,
				kind: NOTE,
				tags: [
					["e", event.id, "", "root", ann.pubkey],
					["p", ann.pubkey],
					["p", bob.pubkey],
				],
			},
			ts: 1_700_000_000_000,
		});
	});

	test("a reply below a root keeps the root and answers the reply", () => {
		const tags = [["e", ROOT, "wss://r", "root", bob.pubkey], ["e", OURS, "", "reply"], toUs];
		const event = said(NOTE, tags);
		const message = readPublic(event, me);
		expect(message).toMatchObject({ mention: true, chat: { id: `thread:${ROOT}` } });
		expect(threadOf(message!.target).tags).toEqual([
			["e", ROOT, "wss://r", "root", bob.pubkey],
			["e", event.id, "", "reply", ann.pubkey],
			["p", ann.pubkey],
		]);
	});

	test("old replies without markers: the first is the root, the last is answered", () => {
		expect(readPublic(said(NOTE, [["e", ROOT], ["e", OURS], toUs]), me)).toMatchObject({
			mention: true,
			chat: { id: `thread:${ROOT}` },
		});
	});

	test("a reply to another person that only carries us along does not address us", () => {
		const tags = [["e", ROOT, "", "root"], ["e", "b".repeat(64), "", "reply", bob.pubkey], toUs];
		expect(readPublic(said(NOTE, tags), me)?.mention).toBe(false);
		const link = `ask nostr:${nprofileEncode({ pubkey: bot.pubkey, relays: ["wss://r"] })} again`;
		expect(readPublic(said(NOTE, tags, link), me)).toMatchObject({ mention: true, text: "ask again" });
	});

	test("a thread and its comments: root in capital letters, parent in small ones", () => {
		const start = said(THREAD_START, [toUs]);
		expect(readPublic(start, me)?.target).toMatchObject({
			to: `thread:${start.id}`,
			kind: COMMENT,
			tags: [
				["E", start.id, "", ann.pubkey],
				["K", "11"],
				["P", ann.pubkey],
				["e", start.id, "", ann.pubkey],
				["k", "11"],
				["p", ann.pubkey],
			],
		});
		const above = [
			["E", ROOT, "", bob.pubkey],
			["K", "11"],
			["P", bob.pubkey],
		];
		const comment = said(COMMENT, [...above, ["e", OURS, "", bot.pubkey], ["k", "1111"], toUs]);
		const message = readPublic(comment, me);
		expect(message).toMatchObject({ mention: true, chat: { id: `thread:${ROOT}` } });
		expect(message?.target.tags).toEqual([
			...above,
			["e", comment.id, "", ann.pubkey],
			["k", "1111"],
			["p", ann.pubkey],
		]);
	});

	test.each([
		["our own", said(NOTE, [toUs], "x", bot)],
		["one that does not name us", said(NOTE, [["p", bob.pubkey]])],
		["a reaction", said(7, [toUs], "+")],
		["an empty one", said(NOTE, [toUs], "  ")],
	])("not read as a message: %s", (_, event) => {
		expect(readPublic(event, me)).toBeUndefined();
	});

	test("what a stranger writes into tags cannot make an intent that fits no note", () => {
		const long = "x".repeat(100_000);
		const crowd = Array.from({ length: 200 }, (_, index) => ["p", index.toString(16).padStart(64, "0")]);
		const roots = Array.from({ length: 50 }, () => ["I", "y".repeat(256), "y".repeat(256)]);
		for (const tags of [
			[["e", ROOT, long, "root", long], ["e", long, "", "reply"], toUs, ["p", long], ...crowd],
			[["E", long], ["A", long, long], ["K", long], ...roots, ["e", ROOT, long], toUs],
		]) {
			for (const kind of [NOTE, THREAD_START, COMMENT]) {
				const { target } = readPublic(said(kind, tags), me)!;
				expect(JSON.stringify(target.tags).length).toBeLessThan(3500);
				expect(target.to.length).toBeLessThan(300);
			}
		}
	});

	test("an answer notifies only a few people of a crowd", () => {
		const crowd = Array.from({ length: 200 }, (_, index) => ["p", index.toString(16).padStart(64, "0")]);
		const tags = readPublic(said(NOTE, [toUs, ...crowd]), me)?.target.tags as string[][];
		expect(tags.filter(([name]) => name === "p")).toHaveLength(20);
	});
});

describe("a rumor as a message", () => {
	const rumor = (tags: string[][], content = "hi", kind = CHAT_MESSAGE, from = ann) =>
		rumorOf(from, { kind, created_at: 1_700_000_000, tags }, content);

	test("of one person, with the rumor's own id and time", () => {
		const one = rumor([toUs]);
		expect(readRumor(one, me)).toEqual({
			eventId: one.id,
			from: { id: ann.pubkey, name: ann.npub },
			chat: { id: ann.pubkey, type: "direct" },
			text: "hi",
			target: { to: ann.pubkey, direct: true, reply_to: one.id },
			ts: 1_700_000_000_000,
		});
	});

	test("of several people is a room, the same for each who writes; who is answered there are all of them", () => {
		const [fromAnn, fromBob] = [
			readRumor(rumor([toUs, ["p", bob.pubkey]]), me),
			readRumor(rumor([toUs, ["p", ann.pubkey]], "hi", CHAT_MESSAGE, bob), me),
		];
		expect(fromAnn?.chat.id).toBe(fromBob?.chat.id);
		expect(fromAnn).toMatchObject({ chat: { type: "group" }, mention: false });
		expect(fromAnn?.target.members).toEqual([ann.pubkey, bob.pubkey].toSorted());
		expect(readRumor(rumor([toUs, ["p", bob.pubkey], ["e", OURS]]), me)?.mention).toBe(true);
	});

	test("a file is described in words; our own copy and reactions are dropped", () => {
		expect(readRumor(rumor([toUs], "https://x", 15), me)?.text).toBe("[file]");
		expect(readRumor(rumor([["p", ann.pubkey]], "x", CHAT_MESSAGE, bot), me)).toBeUndefined();
		expect(readRumor(rumor([toUs], "+", 7), me)).toBeUndefined();
	});
});

test("R2-20: a tool is shown by its sign and its name, never by its arguments", () => {
	expect(toolText("bash")).toBe("🖥️ bash");
	expect(toolText("read")).toBe("📖 read");
	expect(toolText("mcp__docs__search_pages")).toBe("🔌 docs: search pages");
	expect(toolText("weather")).toBe("🛠️ weather");
});

test("what is known of a run becomes tags, what is not does not", () => {
	expect(factTags({})).toEqual([]);
	expect(
		factTags({ runId: "r1", agent: "writer", model: "m", phase: "plan", usage: { input: 12, output: 3, cached: -1 } }),
	).toEqual([
		["run", "r1"],
		["agent", "writer"],
		["model", "m"],
		["phase", "plan"],
		["usage", "input", "12"],
		["usage", "output", "3"],
	]);
});
