/** The adapter as a process, killed and resumed, on a real relay. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { createNostrFake, type NostrFake, person, piecesOf, readPieces } from "../../../packages/lab/src/nostr.ts";
import { GIFT_WRAP, NOTE, STREAM } from "../../../packages/platforms/src/nostr/events.ts";
import { until } from "../../until.ts";
import { deliver, letters, sentences, startAdapter, TIME } from "../process.ts";

const ROOT = "b".repeat(64);
const THREAD = `thread:${ROOT}`;
const ann = person("ann");

let fake: NostrFake;

beforeEach(async () => {
	fake = await createNostrFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const wish = (to: string) => ({ channel: "nostr", settings: { ...fake.settings }, target: { to } });

test("I7 R2-87: in a thread an answer streams in pieces and is stored once, as one reply", async () => {
	const tokens = sentences(60);
	await deliver({ ...wish(THREAD), tokens, tokenEveryMs: 40 });
	const replies = fake.stored({ kinds: [NOTE] });
	expect(replies).toHaveLength(1);
	expect(letters(replies[0]!.content)).toBe(letters(tokens.join("")));
	expect(replies[0]!.tags).toContainEqual(["run", "run_1"]);
	const pieces = piecesOf(fake.received, ROOT);
	// How many depends on how fast the machine is.
	expect(pieces.length).toBeGreaterThan(1);
	expect(pieces.map(({ sequence }) => sequence)).toEqual(pieces.map((_, index) => index + 1));
	expect(readPieces(pieces)).toBe(replies[0]!.content);
});

test("I7: a private answer comes once, wrapped, and nothing else does", async () => {
	const tokens = sentences(40);
	await deliver({ ...wish(ann.pubkey), tokens, tokenEveryMs: 5 });
	expect(letters(fake.visible(ann.pubkey).join(""))).toBe(letters(tokens.join("")));
	expect(fake.received.every(({ kind }) => kind === GIFT_WRAP)).toBe(true);
});

test.each([
	["a thread", THREAD],
	["a private chat", ann.pubkey],
])("I7: killed at every point, an answer in %s is there once", async (_, to) => {
	const tokens = sentences(500);
	const dies = new Set(["message_creating", "call", "message_sent"]);
	const { deaths, daemon } = await deliver({
		...wish(to),
		tokens,
		tokenEveryMs: 1,
		dies: (status) => (status.type !== "call" || status.call === "create") && dies.delete(status.type),
	});
	expect(deaths).toBe(3);
	expect(daemon.error).toBeUndefined();
	expect(letters(fake.visible(to).join(""))).toBe(letters(tokens.join("")));
});

test("R2-19 R2-20 R2-52: a tool flushes what was said and is shown by its name; its arguments stay here", async () => {
	const adapter = startAdapter("nostr", "stream", fake.settings, ({ type, nonce }) => {
		if (type === "message_creating") adapter.write({ type: "ack", nonce, ...name });
	});
	const name = { delivery: "d1", runId: "r1" };
	const options = { tools: true };
	adapter.write({ type: "stream_start", sessionLabel: "main", target: { to: THREAD }, options, ...name });
	adapter.write({ type: "token", text: "I am looking at the", ...name });
	const call = { toolName: "bash", toolCallId: "c1", summary: "cat /etc/passwd" };
	adapter.write({ type: "tool_status", ...call, status: "started", ...name });
	const doing = { text: "🖥️ cat /etc/passwd", tool: "bash" };
	adapter.write({ type: "typing", target: { to: THREAD }, on: true, ...doing, ...name });
	await until("the tool is shown", () => fake.received.some(({ content }) => content === "🖥️ bash"));
	await until("what was said is out", () => readPieces(piecesOf(fake.received, ROOT)) === "I am looking at the");
	adapter.write({ type: "token", text: " file", ...name });
	const facts = { agent: "writer", model: "m1", phase: "plan", usage: { input: 5, output: 7 } };
	adapter.write({ type: "stream_end", final: true, ...facts, ...name });
	await until("it is delivered", () => adapter.lines.some(({ type }) => type === "delivery_complete"));
	expect(await adapter.end()).toBe(0);
	const [reply] = fake.stored({ kinds: [NOTE] });
	expect(reply?.content).toBe("I am looking at the file");
	for (const tag of [
		["run", "r1"],
		["agent", "writer"],
		["model", "m1"],
		["phase", "plan"],
		["usage", "output", "7"],
	])
		expect(reply?.tags).toContainEqual(tag);
	expect(JSON.stringify(fake.received)).not.toContain("passwd");
	expect(fake.stored({ kinds: [STREAM] })).toEqual([]);
});
