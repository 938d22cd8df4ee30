import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createIMessageFake, type IMessageFake } from "../../../packages/lab/src/imessage/imessage.ts";
import { platform } from "../../../packages/platforms/src/imessage/imessage.ts";
import { until } from "../../until.ts";
import {
	abortedWhen,
	faultOf,
	hurriedClock,
	memory,
	type OpenSession,
	openSession,
	sendOptions,
	standingClock,
} from "../session.ts";

const CHAT = "iMessage;-;+15551230001";
const FILE = { name: "a b.txt", contentType: "text/plain", data: Buffer.from("content").toString("base64") };

let fake: IMessageFake;
let opened: OpenSession[];

beforeEach(async () => {
	fake = await createIMessageFake({ privateApi: true });
	opened = [];
});
afterEach(async () => {
	for (const session of opened) await session.close?.();
	await fake.close();
});

async function open(
	backend: string,
	more: Record<string, string> = {},
	state = memory(),
	clock = hurriedClock,
): Promise<OpenSession> {
	const settings = { ...fake.settings, backend, imsg_command: fake.imsgCommand, name: "nexus", ...more };
	const session = await openSession(platform, settings, { state, clock });
	opened.push(session);
	return session;
}

describe.each(["bluebubbles", "imsg"])("%s", (backend) => {
	test("messages go to a chat, or to a person by number; attachments go with their name", async () => {
		const session = await open(backend);
		const { messageId } = await session.create({ to: CHAT }, "one", sendOptions("a"));
		await session.create({ to: "+15551230001" }, "two", sendOptions("b"));
		await session.attach?.({ to: CHAT }, FILE, sendOptions("c"));
		expect(fake.visible(CHAT)).toEqual(["one", "two", ""]);
		const [first, , last] = fake.raw(CHAT);
		expect(first?.guid).toBe(messageId);
		expect([last?.file?.name, last?.file?.data.toString()]).toEqual(["a b.txt", "content"]);
	});

	test("a message that may have been sent is found by its text; one that another nonce made is not it", async () => {
		const state = memory();
		const target = { to: CHAT, chat_id: 7 };
		const { messageId } = await (await open(backend, {}, state)).create(target, "ok", sendOptions("a"));
		fake.fault({ kind: "reset_after_accept", count: 1 });
		const session = await open(backend, {}, state);
		expect((await faultOf(session.create(target, "“hello”", sendOptions("b")))).fault).toBe("unknown_outcome");
		// Messages changes quotes.
		expect(await session.find?.(target, "b", '"hello"')).toEqual({ messageId: fake.raw(CHAT)[1]?.guid });
		expect(await session.find?.(target, "c", "ok")).toBeUndefined();
		expect(await session.find?.(target, "a", "ok")).toEqual({ messageId });
	});

	test("I7: the same text of an earlier answer that was looked up itself is not it", async () => {
		const target = { to: CHAT, chat_id: 7 };
		const session = await open(backend);
		fake.fault({ kind: "reset_after_accept", count: 1 });
		await faultOf(session.create(target, "ok", sendOptions("a")));
		const first = await session.find?.(target, "a", "ok");
		expect(first).toBeDefined();
		fake.fault({ kind: "reset_before", count: 1 });
		await faultOf(session.create(target, "ok", sendOptions("b")));
		expect(await session.find?.(target, "b", "ok")).toBeUndefined();
		expect(await session.find?.(target, "a", "other")).toEqual(first);
	});

	test("I7: an earlier message of unknown origin is not it; without another message in between the look-up cannot decide", async () => {
		const clock = standingClock();
		await fake.close();
		fake = await createIMessageFake({ clock });
		const target = { to: CHAT, chat_id: 7 };
		const session = await open(backend, {}, memory(), clock);
		const lose = (kind: "reset_before" | "reset_after_accept", nonce: string) => {
			fake.fault({ kind, count: 1 });
			return faultOf(session.create(target, "ok", sendOptions(nonce)));
		};
		await lose("reset_after_accept", "a");
		clock.pass(60_000);
		await lose("reset_before", "b");
		expect((await faultOf(session.find?.(target, "b", "ok"))).message).toContain("does not tell");
		await session.create(target, "in between", sendOptions("c"));
		clock.pass(1000);
		await lose("reset_before", "d");
		expect(await session.find?.(target, "d", "ok")).toBeUndefined();
		await lose("reset_after_accept", "d");
		expect(await session.find?.(target, "d", "ok")).toEqual({ messageId: fake.raw(CHAT).at(-1)?.guid });
	});

	test("a file that may have been sent is found by its name, and not sent twice", async () => {
		const target = { to: CHAT, chat_id: 7 };
		const session = await open(backend);
		fake.fault({ kind: "reset_after_accept", count: 1 });
		expect((await faultOf(session.attach?.(target, FILE, sendOptions("f")))).fault).toBe("unknown_outcome");
		expect(await session.find?.(target, "f", FILE.name)).toEqual({ messageId: fake.raw(CHAT)[0]?.guid });
	});

	test("of a chat that it does not know it cannot tell", async () => {
		const session = await open(backend);
		fake.fault({ kind: "reset_before", count: 1 });
		await faultOf(session.create({ to: "+15559990000" }, "x", sendOptions("n")));
		const error = await faultOf(session.find?.({ to: "+15559990000" }, "n", "x"));
		expect(error.fault).toBe("invalid");
	});

	test("no such chat: gone; empty: invalid; no answer: unknown", async () => {
		const session = await open(backend);
		expect((await faultOf(session.create({ to: "iMessage;+;chat404" }, "x", sendOptions()))).fault).toBe("gone");
		expect((await faultOf(session.create({ to: CHAT }, "", sendOptions()))).fault).toBe("invalid");
		fake.fault({ kind: "hang", count: 1 });
		const known = fake.calls.length;
		const left = abortedWhen(() => fake.calls.length > known);
		const hung = await faultOf(session.create({ to: CHAT }, "x", sendOptions("h", left)));
		expect(hung.fault).toBe("unknown_outcome");
	});

	test("health", async () => {
		expect((await (await open(backend)).health()).ok).toBe(true);
	});
});

describe("BlueBubbles", () => {
	test("with the private interface an answer in a group shows what it answers", async () => {
		const target = { to: "iMessage;+;chat1", reply_to: "GUID-1", direct: false };
		await (await open("bluebubbles")).create(target, "x", sendOptions("a"));
		await (await open("bluebubbles", { private_api: "true" })).create(target, "y", sendOptions("b"));
		expect(fake.raw("iMessage;+;chat1").map(({ replyTo }) => replyTo)).toEqual([undefined, "GUID-1"]);
	});

	test("the chat with a person is found under the name that it has on newer Macs", async () => {
		await fake.inject({ text: "hello", to: "any;-;+15551230007" });
		const session = await open("bluebubbles");
		fake.fault({ kind: "reset_before", count: 1 });
		await faultOf(session.create({ to: "+15551230007" }, "x", sendOptions("n")));
		expect(await session.find?.({ to: "+15551230007" }, "n", "x")).toBeUndefined();
	});

	test("a second try while the first is under way is not a second message", async () => {
		const sent = Promise.withResolvers<void>();
		const slow = await createIMessageFake({ sent: sent.promise });
		const session = await open("bluebubbles", { api_url: slow.url });
		const first = session.create({ to: CHAT }, "x", sendOptions("same"));
		await until("the message is being sent", () => slow.sending.size === 1);
		const second = await faultOf(session.create({ to: CHAT }, "x", sendOptions("same")));
		expect(second.fault).toBe("unknown_outcome");
		sent.resolve();
		const { messageId } = await first;
		expect(await session.find?.({ to: CHAT }, "same", "x")).toEqual({ messageId });
		expect(slow.visible(CHAT)).toEqual(["x"]);
		await slow.close();
	});

	test("wrong password: denied; not registered: gone; no private interface: denied", async () => {
		const wrong = await faultOf((await open("bluebubbles", { password: "wrong" })).health());
		expect(wrong).toMatchObject({ fault: "denied", message: expect.stringContaining("password is wrong") });
		const session = await open("bluebubbles");
		expect((await faultOf(session.create({ to: "+15550022" }, "x", sendOptions()))).fault).toBe("gone");
		const bare = await createIMessageFake();
		const privately = await open("bluebubbles", { api_url: bare.url, private_api: "true" });
		expect((await faultOf(privately.create({ to: CHAT }, "x", sendOptions()))).fault).toBe("denied");
		expect(await privately.health()).toMatchObject({ ok: false });
		await bare.close();
	});

	test("settings that cannot work are said at once", async () => {
		await expect(open("bluebubbles", { api_url: "" })).rejects.toThrow(/api_url/);
		await expect(open("pigeon")).rejects.toThrow(/bluebubbles, imsg/);
	});
});

describe("imsg", () => {
	test("not installed: unavailable, and what to do; not allowed: denied", async () => {
		const absent = await faultOf((await open("imsg", { imsg_command: "no-such-imsg rpc" })).health());
		expect(absent).toMatchObject({ fault: "unavailable", message: expect.stringContaining("installed") });
		const denied = await faultOf((await open("imsg")).create({ to: "iMessage;-;403" }, "x", sendOptions()));
		expect(denied).toMatchObject({ fault: "denied", message: expect.stringContaining("-1743). Allow it") });
	});

	test("behind a send that hangs nothing was sent, and the next goes through another process", async () => {
		const session = await open("imsg");
		const blocked = await faultOf(session.create({ to: "iMessage;-;hangs" }, "x", sendOptions()));
		expect(blocked).toMatchObject({ fault: "unavailable", message: expect.stringContaining("remains in flight") });
		await session.create({ to: CHAT }, "y", sendOptions());
		expect(fake.visible(CHAT)).toEqual(["y"]);
	});

	test("is started again after it has ended", async () => {
		const session = await open("imsg");
		fake.fault({ kind: "reset_before", count: 1 });
		expect((await faultOf(session.create({ to: CHAT }, "x", sendOptions()))).fault).toBe("unknown_outcome");
		await session.create({ to: CHAT }, "y", sendOptions());
		expect(fake.visible(CHAT)).toEqual(["y"]);
	});
});
