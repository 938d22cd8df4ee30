/** A session on real relays: what is stored, what only passes by, and what relays that fail make of it. */

import { verifyEvent } from "nostr-tools/pure";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Target, Tools } from "../../../packages/adapter/src/kit.ts";
import type { PlatformFault } from "../../../packages/adapter/src/port.ts";
import {
	AGENT,
	createNostrFake,
	type NostrFake,
	person,
	piecesOf,
	readPieces,
} from "../../../packages/lab/src/nostr.ts";
import {
	COMMENT,
	GIFT_WRAP,
	NOTE,
	PROFILE,
	STREAM,
	TYPING_OFF,
	TYPING_ON,
} from "../../../packages/platforms/src/nostr/events.ts";
import { platform } from "../../../packages/platforms/src/nostr/nostr.ts";
import { verdict } from "../../../packages/platforms/src/nostr/pool.ts";
import { PUBLISHER_LIMITS } from "../../../packages/platforms/src/nostr/publisher.ts";
import type { RelayOutcome } from "../../../packages/platforms/src/nostr/relay.ts";
import { NostrStreams } from "../../../packages/platforms/src/nostr/streams.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { manualClock } from "../../clock.ts";
import { until } from "../../until.ts";
import { abortedWhen, faultOf, memory, type OpenSession, openSession, sendOptions } from "../session.ts";

const ROOT = "a".repeat(64);
const THREAD: Target = { to: `thread:${ROOT}`, direct: false };
const ann = person("ann");
const bob = person("bob");

let fakes: NostrFake[];
let sessions: OpenSession[];

beforeEach(async () => {
	fakes = [await createNostrFake(), await createNostrFake()];
	sessions = [];
});
afterEach(async () => {
	for (const session of sessions) await session.close?.();
	for (const fake of fakes) await fake.close();
});

async function open(more: Record<string, string> = {}, state = memory(), tools: Partial<Tools> = {}) {
	const relays = fakes.map(({ url }) => url).join(" ");
	const settings = { ...fakes[0]!.settings, relays, ...more };
	const session = await openSession(platform, settings, { state, clock: systemClock, ...tools });
	sessions.push(session);
	return session;
}

describe("answers", () => {
	test("R2-52 R2-87: a stored reply in the thread's kind, signed, with what is known of its run, at every relay", async () => {
		const session = await open({ quorum: "2" });
		const tags = [
			["E", ROOT],
			["e", ROOT],
			["k", "11"],
		];
		const facts = { runId: "r1", agent: "writer", model: "m1", phase: "plan", usage: { input: 3, output: 4 } };
		const made = await session.create({ ...THREAD, kind: COMMENT, tags }, "hello", { ...sendOptions(), facts });
		for (const fake of fakes) {
			const [event] = fake.stored({ kinds: [COMMENT] });
			expect(event).toMatchObject({ id: made.messageId, content: "hello", pubkey: AGENT.pubkey });
			expect(verifyEvent(event!)).toBe(true);
			expect(event!.tags).toEqual([
				...tags,
				["message", "n1"],
				["run", "r1"],
				["agent", "writer"],
				["model", "m1"],
				["phase", "plan"],
				["usage", "input", "3"],
				["usage", "output", "4"],
			]);
		}
	});

	test("R2-87: a private answer is wrapped for its reader and for the account, and nothing of it is in plain text", async () => {
		const session = await open();
		expect(session.style?.({ to: ann.npub })).toBe("whole");
		await session.typing?.({ to: ann.pubkey, direct: true }, true);
		const options = { ...sendOptions(), facts: { runId: "run-of-ann" } };
		const { messageId } = await session.create({ to: ann.npub, direct: true, reply_to: ROOT }, "secret", options);
		const [rumor] = fakes[0]!.raw(ann.pubkey);
		expect(rumor).toMatchObject({ id: messageId, content: "secret", pubkey: AGENT.pubkey });
		expect(rumor!.tags).toEqual([
			["p", ann.pubkey],
			["e", ROOT],
			["message", "n1"],
			["run", "run-of-ann"],
		]);
		await until("the copy is there", () => fakes[0]!.received.length === 2);
		const seen = JSON.stringify(fakes[0]!.received);
		expect(fakes[0]!.received.every(({ kind }) => kind === GIFT_WRAP)).toBe(true);
		for (const told of ['"secret"', "run-of-ann"]) expect(seen).not.toContain(told);
	});

	test("a room's members each get the same rumor", async () => {
		const members = [ann.pubkey, bob.pubkey];
		const { messageId } = await (await open()).create({ to: "room:1", members }, "hi", sendOptions());
		for (const member of members) expect(fakes[0]!.raw(member).map(({ id }) => id)).toEqual([messageId]);
	});

	test("I7: another process makes the same event: same id, one event, whatever time it is and whatever it knows", async () => {
		const state = memory();
		const first = await open({}, state);
		for (const fake of fakes) fake.fault({ kind: "reset_after_accept", count: 1 });
		const lost = await faultOf(first.create(THREAD, "once", { ...sendOptions(), facts: { runId: "r1" } }));
		expect(lost.fault).toBe("unknown_outcome");
		const later = { ...systemClock, now: () => Date.now() + 90_000 };
		const second = await open({}, state, { clock: later });
		expect(await second.find?.(THREAD, "n1", "once")).toBeUndefined();
		const made = await second.create(THREAD, "once", sendOptions());
		const events = fakes[0]!.stored({ kinds: [NOTE] });
		expect(events.map(({ id }) => id)).toEqual([made.messageId]);
		expect(events[0]!.tags).toContainEqual(["run", "r1"]);
		expect(await second.find?.(THREAD, "n1", "once")).toEqual(made);
		// An event that is known to be published is not sent again.
		const calls = fakes[0]!.calls.length;
		expect(await (await open({}, state)).create(THREAD, "once", sendOptions())).toEqual(made);
		expect(fakes[0]!.calls.length).toBe(calls);
	});

	test("I7: a private answer that is sent again is the same rumor in another wrap", async () => {
		const state = memory();
		for (const fake of fakes) fake.fault({ kind: "reset_after_accept", count: 1 });
		await faultOf((await open({}, state)).create({ to: ann.pubkey }, "once", sendOptions()));
		const made = await (await open({}, state)).create({ to: ann.pubkey }, "once", sendOptions());
		expect(fakes[0]!.stored({ kinds: [GIFT_WRAP], "#p": [ann.pubkey] })).toHaveLength(2);
		expect(fakes[0]!.raw(ann.pubkey).map(({ id }) => id)).toEqual([made.messageId]);
	});

	test("I7: the same words twice within a second are two messages", async () => {
		const session = await open({}, memory(), { clock: { ...systemClock, now: () => 1_700_000_000_000 } });
		for (const to of [THREAD.to, ann.pubkey]) {
			const [one, two] = [
				await session.create({ to }, "again", sendOptions(`1 ${to}`)),
				await session.create({ to }, "again", sendOptions(`2 ${to}`)),
			];
			expect(one.messageId).not.toBe(two.messageId);
			expect(fakes[0]!.visible(to)).toEqual(["again", "again"]);
		}
	});

	test("I7: another text for a message that may have left is not sent", async () => {
		const state = memory();
		for (const fake of fakes) fake.fault({ kind: "reset_after_accept", count: 1 });
		await faultOf((await open({}, state)).create(THREAD, "one text", sendOptions()));
		const error = await faultOf((await open({}, state)).create(THREAD, "another text", sendOptions()));
		expect(error).toMatchObject({ fault: "unknown_outcome", message: expect.stringContaining("another text") });
		expect(fakes[0]!.visible(THREAD.to)).toEqual(["one text"]);
	});

	test("a refusal after a try in doubt leaves it in doubt", async () => {
		const state = memory();
		for (const fake of fakes) fake.fault({ kind: "reset_after_accept", count: 1 });
		await faultOf((await open({}, state)).create(THREAD, "x", sendOptions()));
		for (const fake of fakes) fake.fault({ kind: "429", count: 1 });
		expect((await faultOf((await open({}, state)).create(THREAD, "x", sendOptions()))).fault).toBe("unknown_outcome");
	});
});

describe("what passes by in a public thread", () => {
	const tool = (name: string, status: "started" | "completed", summary: string) => ({ id: "1", name, status, summary });

	test("R2-19 R2-20 R2-25 R2-48: pieces make the text, a tool flushes and is shown by its name only, the end flushes", async () => {
		const session = await open();
		const options = { ...sendOptions(), facts: { runId: "r1" } };
		await session.preview?.(THREAD, 7, "Let me", options);
		await session.preview?.(THREAD, 7, "Let me look", {
			...options,
			tools: [tool("bash", "started", "rm -rf /secret")],
		});
		await session.typing?.(THREAD, true, { tool: "bash", text: "🖥️ rm -rf /secret" });
		await until("the tool is shown", () => fakes[0]!.calls.some(({ name }) => name === "EVENT typing"));
		expect(readPieces(piecesOf(fakes[0]!.received, ROOT))).toBe("Let me look");
		const [typing] = fakes[0]!.received.filter(({ kind }) => kind === TYPING_ON);
		expect(typing).toMatchObject({ content: "🖥️ bash", tags: [["e", ROOT, "", "root"]] });
		expect(JSON.stringify(fakes[0]!.received)).not.toContain("secret");
		await session.preview?.(THREAD, 7, "Let me look. It", { ...options, tools: [] });
		await session.create(THREAD, "Let me look. It is done", options);
		const pieces = piecesOf(fakes[0]!.received, ROOT);
		expect(readPieces(pieces)).toBe("Let me look. It is done");
		expect(pieces.map(({ sequence }) => sequence)).toEqual(pieces.map((_, index) => index + 1));
		// The stored reply comes after the last piece, and nothing that passed by is stored.
		expect(fakes[0]!.received.at(-1)?.kind).toBe(NOTE);
		expect(fakes[0]!.stored({ kinds: [STREAM, TYPING_ON, TYPING_OFF] })).toEqual([]);
	});

	test("R2-54 R2-127: two runs in one thread have each a stream of their own, ended once", async () => {
		const session = await open();
		const of = (runId: string) => ({ ...sendOptions(runId), facts: { runId } });
		await session.preview?.(THREAD, 1, "one", of("r1"));
		await session.preview?.(THREAD, 2, "two", of("r2"));
		await session.create(THREAD, "one and all", of("r1"));
		await session.create(THREAD, "one and all", of("r1"));
		await session.create(THREAD, "two and all", of("r2"));
		const said = (stream: string) =>
			fakes[0]!.received
				.filter(({ kind, tags }) => kind === STREAM && tags.some(([name, id]) => name === "stream" && id === stream))
				.map(({ content }) => content);
		await until("both are out", () => said("2").length === 2);
		expect([said("1"), said("2")]).toEqual([
			["one", " and all"],
			["two", " and all"],
		]);
	});

	test("typing begins and ends; a repeated sign still tells the tool", async () => {
		const session = await open();
		await session.typing?.(THREAD, true);
		const doing = { tool: "mcp__docs__find", text: "🔌 finding a secret" };
		await session.typing?.(THREAD, true, doing);
		await until("the tool is shown", () => fakes[0]!.received.length === 2);
		await session.typing?.(THREAD, true, doing);
		await until("it is shown again", () => fakes[0]!.received.length === 3);
		await session.typing?.(THREAD, false);
		await until("four signs", () => fakes[0]!.received.length === 4);
		expect(fakes[0]!.received.map(({ kind, content }) => [kind, content])).toEqual([
			[TYPING_ON, ""],
			[TYPING_ON, "🔌 docs: find"],
			[TYPING_ON, "🔌 docs: find"],
			[TYPING_OFF, ""],
		]);
	});

	test("A22 A30: of tools that follow each other within the gap the last is shown", async () => {
		const clock = manualClock();
		const passed: string[] = [];
		const streams = new NostrStreams(clock, PUBLISHER_LIMITS, ({ content }) => void passed.push(content));
		for (const tool of ["", "read", "bash", "git_log"]) streams.typing(THREAD, true, tool);
		expect(passed).toEqual([""]);
		clock.advance(PUBLISHER_LIMITS.gapMs);
		expect(passed).toEqual(["", "🔧 git_log"]);
		streams.typing(THREAD, true, "read");
		streams.typing(THREAD, false, "");
		clock.advance(1000);
		expect(passed).toEqual(["", "🔧 git_log", ""]);
		streams.close();
	});
});

describe("relays", () => {
	test("one that refuses, one that is gone: enough is enough", async () => {
		fakes[0]!.fault({ kind: "5xx", count: 1 });
		const { messageId } = await (await open()).create(THREAD, "x", sendOptions());
		expect(fakes[1]!.stored({ ids: [messageId] })).toHaveLength(1);
		await fakes[0]!.close();
		await (await open()).create(THREAD, "y", sendOptions("n2"));
		expect(fakes[1]!.visible(THREAD.to)).toEqual(["x", "y"]);
		fakes.shift();
	});

	test("too few: in doubt, because a reader may have it; a second try reaches the rest with the same event", async () => {
		const session = await open({ quorum: "2" }, memory());
		fakes[0]!.fault({ kind: "5xx", count: 1 });
		const error = await faultOf(session.create(THREAD, "x", sendOptions()));
		expect(error).toMatchObject({ fault: "unknown_outcome", message: expect.stringMatching(/^1 of 2 relays have it/) });
		const { messageId } = await session.create(THREAD, "x", sendOptions());
		for (const fake of fakes) expect(fake.raw(THREAD.to).map(({ id }) => id)).toEqual([messageId]);
	});

	test("one that answers late or never is not waited for when the others suffice, and is in doubt otherwise", async () => {
		fakes[0]!.fault({ kind: "hang", count: 2 });
		await (await open()).create(THREAD, "x", sendOptions());
		const left = abortedWhen(() => fakes[0]!.calls.length === 2);
		const session = await open({ quorum: "2" });
		expect((await faultOf(session.create(THREAD, "y", sendOptions("n2", left)))).fault).toBe("unknown_outcome");
	});

	test("one that requires authentication gets it, and then takes the event", async () => {
		await Promise.all(fakes.map((fake) => fake.close()));
		fakes = [await createNostrFake({ isClosed: true })];
		const { messageId } = await (await open()).create(THREAD, "x", sendOptions());
		expect(fakes[0]!.stored({ ids: [messageId] })).toHaveLength(1);
	});

	const no = (reason: string): RelayOutcome => ({ at: "refused", reason });
	test.each<[string, RelayOutcome[], PlatformFault | undefined]>([
		["enough", [{ at: "accepted" }, no("blocked: you")], undefined],
		["blocked", [no("blocked: you")], "denied"],
		["invalid", [no("invalid: too long"), no("invalid: too long")], "invalid"],
		["one may pass", [no("blocked: you"), no("rate-limited: slow down")], "rate_limited"],
		["unreachable", [{ at: "unreached", reason: "ECONNREFUSED" }], "unavailable"],
		["no answer", [no("blocked: you"), { at: "unknown", reason: "late" }], "unknown_outcome"],
		["no known prefix", [no("go away")], "unavailable"],
	])("together: %s", (_, outcomes, fault) => {
		expect(
			verdict(
				outcomes.map((each, index) => [`r${index}`, each] as const),
				1,
			)?.fault,
		).toBe(fault);
	});
});

describe("the account", () => {
	test.each([
		[{ secret_key: "nsec1nonsense" }, /secret_key must be nsec1/],
		[{ secret_key: person("ann").npub }, /public key/],
		[{ relays: "https://relay.example" }, /relays must be addresses/],
		[{ relays: "" }, /relays must be addresses/],
		[{ flush_ms: "300", flush_ms_max: "200" }, /flush_ms not the longer one/],
		[{ quorum: "3" }, /quorum must be a whole number from 1 to the number of relays, which is 2/],
	])("a wrong setting is said at once: %j", async (more, said) => {
		expect(await faultOf(open(more))).toMatchObject({ fault: "invalid", message: expect.stringMatching(said) });
	});

	test("a wrong target is invalid", async () => {
		const session = await open();
		for (const to of ["nobody", "thread:short", "room:1"])
			expect((await faultOf(session.create({ to }, "x", sendOptions(to)))).fault).toBe("invalid");
	});

	test("the profile is published from the settings, and again only when they change", async () => {
		const state = memory();
		const listen = async (about: string) => {
			const stopping = new AbortController();
			const going = (await open({ name: "Nexus", about }, state)).monitor?.(async () => {}, stopping.signal);
			await until("the profile is noted", () => state.get("profile") !== undefined);
			return async () => {
				stopping.abort();
				await going;
			};
		};
		await (await listen("an agent"))();
		const [profile] = fakes[0]!.stored({ kinds: [PROFILE] });
		expect(JSON.parse(profile!.content)).toEqual({ name: "Nexus", about: "an agent", bot: true });
		expect(fakes[0]!.stored({ kinds: [10_050] })[0]!.tags).toEqual(fakes.map(({ url }) => ["relay", url]));
		await (await listen("an agent"))();
		expect(fakes[0]!.calls.filter(({ name }) => name === "EVENT profile")).toHaveLength(1);
		const stop = await listen("another");
		await until(
			"the new profile is there",
			() => fakes[0]!.calls.filter(({ name }) => name === "EVENT profile").length === 2,
		);
		await stop();
	});

	test("health says who we are and how many relays are there", async () => {
		expect(await (await open({ quorum: "2" })).health()).toEqual({ ok: true, detail: `${AGENT.npub}, 2 of 2 relays` });
		await fakes.pop()!.close();
		const dead = "ws://127.0.0.1:1/";
		const report = await (await open({ relays: `${fakes[0]!.url} ${dead}`, quorum: "2" })).health();
		expect(report).toMatchObject({ ok: false, detail: expect.stringContaining("1 of 2 relays; ws://127.0.0.1:1/") });
	});
});
