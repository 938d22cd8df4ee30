import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDiscordFake, type DiscordFake } from "../../../packages/lab/src/discord/discord.ts";
import { platform } from "../../../packages/platforms/src/discord/discord.ts";
import { NONCE_TRUSTED_MS } from "../../../packages/platforms/src/discord/recognise.ts";
import { type Clock, systemClock } from "../../../packages/protocol/src/clock.ts";
import { manualClock } from "../../clock.ts";
import { abortedWhen, faultOf, openSession, sendOptions, standingClock } from "../session.ts";

let fake: DiscordFake;

beforeEach(async () => {
	fake = await createDiscordFake();
});
afterEach(() => fake.close());

const open = (settings: Record<string, string> = {}, clock: Clock = systemClock) =>
	openSession(platform, { ...fake.settings, ...settings }, { clock });

describe("messages", () => {
	test("a message is created and edited, and notifies no user", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "77" }, "one", sendOptions());
		await session.edit?.({ to: "77" }, messageId, "two", sendOptions());
		await session.edit?.({ to: "77" }, messageId, "two", sendOptions());
		expect(fake.visible("77")).toEqual(["two"]);
		for (const { body } of fake.calls) {
			expect(body).toMatchObject({ allowed_mentions: { parse: [] }, flags: 4 });
		}
	});

	test("the same nonce again is the same message, and it gets the newer text", async () => {
		const session = await open();
		const first = await session.create({ to: "77" }, "Hel", sendOptions());
		const again = await session.create({ to: "77" }, "Hello", sendOptions());
		expect(again).toEqual(first);
		expect(fake.visible("77")).toEqual(["Hello"]);
		await session.create({ to: "77" }, "Hello", sendOptions("n2"));
		expect(fake.visible("77")).toEqual(["Hello", "Hello"]);
	});

	test("what was created is found by its nonce, however alike others are; what was not is not", async () => {
		const session = await open();
		// Its account's notes are lost.
		const other = await open();
		const target = { to: "77", since: "1" };
		const first = await session.create(target, "Hello", sendOptions("n1"));
		const second = await session.create(target, "Hello", sendOptions("n2"));
		expect(await other.find?.(target, "n1", "Hello world")).toEqual(first);
		expect(await other.find?.(target, "n2", "Hello world")).toEqual(second);
		expect(await other.find?.(target, "n3", "Good day")).toBeUndefined();
		expect(await (await open()).find?.({ ...target, since: second.messageId }, "n2", "Hello world")).toBeUndefined();
		expect(fake.visible("77")).toEqual(["Hello", "Hello"]);
	});

	test("I7: an old message with the same text that an earlier creation made is not the one that is missing", async () => {
		const clock = standingClock();
		await fake.close();
		fake = await createDiscordFake({ clock });
		const session = await open({}, clock);
		const target = { to: "77" };
		const lose = (kind: "reset_before" | "reset_after_accept", nonce: string, text: string) => {
			fake.fault({ kind, count: 1, call: "POST message" });
			return faultOf(session.create(target, text, sendOptions(nonce)));
		};
		await lose("reset_after_accept", "n1", "Hello");
		const first = await session.find?.(target, "n1", "Hello");
		expect(first).toEqual({ messageId: fake.raw("77")[0]?.id });
		clock.pass(NONCE_TRUSTED_MS + 1000);
		await lose("reset_before", "n2", "Hello");
		expect(await session.find?.(target, "n2", "Hello")).toBeUndefined();
		// Never looked up: its time alone says that it is another one, and clocks may differ.
		await lose("reset_after_accept", "n3", "Good day");
		clock.pass(NONCE_TRUSTED_MS + 1000);
		await lose("reset_before", "n4", "Good day");
		expect((await faultOf(session.find?.(target, "n4", "Good day"))).message).toContain("does not tell");
		await session.create(target, "in between", sendOptions("n5"));
		await lose("reset_before", "n6", "Good day");
		expect(await session.find?.(target, "n6", "Good day")).toBeUndefined();
		expect(fake.visible("77")).toEqual(["Hello", "Good day", "in between"]);
	});

	test("threads, replies, prefixed channels and persons", async () => {
		const session = await open();
		await session.create({ to: "77", thread_id: "88", reply_to: "55" }, "in thread", sendOptions("a"));
		expect(fake.raw("88")[0]?.message_reference).toEqual({ message_id: "55", fail_if_not_exists: false });
		await session.create({ to: "channel:99" }, "prefixed", sendOptions("b"));
		expect(fake.visible("99")).toEqual(["prefixed"]);
		await session.create({ to: "user:42" }, "direct", sendOptions("c"));
		await session.create({ to: "user:42" }, "again", sendOptions("d"));
		expect(fake.visible("742")).toEqual(["direct", "again"]);
		expect((await faultOf(session.create({ to: "#general" }, "x", sendOptions("e")))).fault).toBe("invalid");
	});

	test("typing: an empty answer that claims to be JSON is not a failure", async () => {
		const session = await open();
		await session.typing?.({ to: "77" }, true);
		await session.typing?.({ to: "77" }, false);
		expect(fake.calls.map(({ name }) => name)).toEqual(["POST typing"]);
	});

	test("attachments keep their name, type and bytes", async () => {
		const attachment = { name: "a b.txt", contentType: "text/plain", data: Buffer.from("hi\r\n--").toString("base64") };
		await (await open()).attach?.({ to: "77", reply_to: "5" }, attachment, sendOptions());
		const [message] = fake.raw("77");
		expect(message?.attachments).toMatchObject([{ filename: "a b.txt", content_type: "text/plain" }]);
		expect(message?.files[0]?.toString()).toBe("hi\r\n--");
		expect(message?.message_reference?.message_id).toBe("5");
	});
});

describe("pace", () => {
	test("300 ms where the bucket of edits allows it, however few creations are left", async () => {
		await fake.close();
		fake = await createDiscordFake({ editRate: [5, 1000] });
		const session = await open({}, manualClock(Date.now()));
		const target = { to: "77" };
		const { messageId } = await session.create(target, "x", sendOptions());
		expect(session.pace?.(target).targetIntervalMs).toBe(300);
		await session.edit?.(target, messageId, "y", sendOptions());
		expect(session.pace?.(target).targetIntervalMs).toBe(300);
	});

	test("300 ms at first, then what the bucket's headers leave, with one call kept for the final", async () => {
		await fake.close();
		fake = await createDiscordFake({ editRate: [5, 5000] });
		const session = await open({}, manualClock(Date.now()));
		const target = { to: "77" };
		expect(session.pace?.(target).targetIntervalMs).toBe(300);
		const { messageId } = await session.create(target, "x", sendOptions());
		await session.edit?.(target, messageId, "y", sendOptions());
		expect(session.pace?.(target).targetIntervalMs).toBe(5000 / 3);
		expect(session.pace?.({ to: "78" }).targetIntervalMs).toBe(300);
	});

	test("an empty bucket refuses without a call", async () => {
		await fake.close();
		fake = await createDiscordFake({ editRate: [5, 600_000] });
		const session = await open();
		const { messageId } = await session.create({ to: "77" }, "x", sendOptions());
		for (let n = 0; n < 5; n++) await session.edit?.({ to: "77" }, messageId, `y${n}`, sendOptions());
		const error = await faultOf(session.edit?.({ to: "77" }, messageId, "z", sendOptions()));
		expect(error.fault).toBe("rate_limited");
		expect(error.retryAfterMs).toBeGreaterThan(500_000);
		expect(fake.calls.filter(({ status }) => status === 429)).toHaveLength(0);
	});
});

describe("faults", () => {
	test.each([
		["404", "gone"],
		["403", "denied"],
		["50013", "denied"],
		["160002", "denied"],
	])("channel %s: %s", async (to, fault) => {
		expect((await faultOf((await open()).create({ to }, "x", sendOptions()))).fault).toBe(fault);
	});

	test("too long, empty, a nonce too long: invalid", async () => {
		const session = await open();
		expect((await faultOf(session.create({ to: "77" }, "x".repeat(2001), sendOptions()))).fault).toBe("invalid");
		expect((await faultOf(session.create({ to: "77" }, " ", sendOptions()))).fault).toBe("invalid");
		expect((await faultOf(session.create({ to: "77" }, "x", sendOptions("n".repeat(26))))).fault).toBe("invalid");
	});

	test("an edit of a deleted message: gone; of a nonce whose message was deleted too", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "77" }, "x", sendOptions());
		fake.remove("77", messageId);
		expect((await faultOf(session.edit?.({ to: "77" }, messageId, "y", sendOptions()))).fault).toBe("gone");
		expect((await faultOf(session.create({ to: "77" }, "x", sendOptions()))).fault).toBe("gone");
	});

	test("a wrong token: denied, what to do, and it is still sent with the next call", async () => {
		const session = await open({ token: "wrong" });
		for (let n = 0; n < 2; n++) {
			const error = await faultOf(session.health());
			expect(error).toMatchObject({ fault: "denied", message: expect.stringContaining("developer portal") });
		}
	});

	test("429: rate limited, with the body's fraction of a second", async () => {
		fake.fault({ kind: "429", count: 1, ms: 1234 });
		const error = await faultOf((await open()).create({ to: "77" }, "x", sendOptions()));
		expect(error).toMatchObject({ fault: "rate_limited", retryAfterMs: 1234 });
	});

	test("a call that hangs ends with its signal, and the next one is not behind it", async () => {
		const session = await open();
		fake.fault({ kind: "hang", count: 1 });
		const signal = abortedWhen(() => fake.calls.length === 1);
		const error = await faultOf(session.create({ to: "77" }, "x", { ...sendOptions(), signal }));
		expect(error.fault).toBe("unknown_outcome");
		await session.create({ to: "77" }, "x", sendOptions());
		expect(fake.visible("77")).toEqual(["x"]);
	});

	test("a look-up that hangs ends with its signal, and the next one is not behind it", async () => {
		const session = await open();
		const target = { to: "77", since: "1" };
		fake.fault({ kind: "hang", count: 1, call: "GET messages" });
		const signal = abortedWhen(() => fake.calls.length === 1);
		await faultOf(session.find?.(target, "n1", "x", signal));
		// The SDK's own limit is a minute.
		await expect.poll(() => fake.calls[0]?.ms).toBeLessThan(30_000);
		expect(await session.find?.(target, "n1", "x", sendOptions().signal)).toBeUndefined();
		expect(fake.calls.map(({ status }) => status)).toEqual([0, 200]);
	});
});

test("health says who we are", async () => {
	expect(await (await open()).health()).toEqual({ ok: true, detail: "nexus (900000000000000001)" });
});
