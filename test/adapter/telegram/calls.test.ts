import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createTelegramFake, type TelegramFake } from "../../../packages/lab/src/telegram/telegram.ts";
import { createApi } from "../../../packages/platforms/src/telegram/api.ts";
import { platform } from "../../../packages/platforms/src/telegram/telegram.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { faultOf, openSession, sendOptions } from "../session.ts";

let fake: TelegramFake;

beforeEach(async () => {
	fake = await createTelegramFake();
});
afterEach(() => fake.close());

const open = (settings: Record<string, string> = {}) =>
	openSession(platform, { ...fake.settings, ...settings }, { clock: systemClock });

describe("messages", () => {
	test("a message is created, edited, and saying the same again is a success", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "42" }, "one &amp; two", sendOptions());
		expect(fake.visible("42")).toEqual(["one & two"]);
		await session.edit?.({ to: "42" }, messageId, "<b>three</b>", sendOptions());
		await session.edit?.({ to: "42" }, messageId, "<b>three</b>", sendOptions());
		expect(fake.visible("42")).toEqual(["three"]);
		expect(fake.raw("42")[0]).toMatchObject({ edits: 1, entities: [{ type: "bold", offset: 0, length: 5 }] });
	});

	test("threads and replies are named where the target names them", async () => {
		const session = await open();
		await session.create({ to: "-1001", thread_id: "7", reply_to: "55" }, "hi", sendOptions());
		expect(fake.raw("-1001")[0]).toMatchObject({ thread: 7, replyTo: 55 });
	});

	test("markup that Telegram cannot read is said without markup", async () => {
		const session = await open();
		await session.create({ to: "42" }, "<b>1 &lt; 2", sendOptions());
		expect(fake.visible("42")).toEqual(["1 < 2"]);
	});

	test("a group that became a supergroup is written to at its new place", async () => {
		const session = await open();
		fake.migrate("-5", "-1005");
		await session.create({ to: "-5" }, "one", sendOptions());
		await session.create({ to: "-5" }, "two", sendOptions());
		expect(fake.visible("-1005")).toEqual(["one", "two"]);
		expect(fake.calls.map(({ to, status }) => [to, status])).toEqual([
			["-5", 400],
			["-1005", 200],
			["-1005", 200],
		]);
	});

	test("drafts: previews in private chats only, finished by a message", async () => {
		const session = await open({ drafts: "true" });
		expect(session.style?.({ to: "42" })).toBe("preview");
		expect(session.style?.({ to: "-1001" })).toBe("edit");
		await session.preview?.({ to: "42" }, 9, "grow", sendOptions());
		await session.preview?.({ to: "42" }, 9, "growing", sendOptions());
		expect(fake.draft("42")).toBe("growing");
		await session.create({ to: "42" }, "grown", sendOptions());
		expect([fake.draft("42"), fake.visible("42")]).toEqual([undefined, ["grown"]]);
		expect((await open()).style?.({ to: "42" })).toBe("edit");
	});

	test("typing is shown, and not hidden: it ends by itself", async () => {
		const session = await open();
		await session.typing?.({ to: "-1001", thread_id: "7" }, true);
		await session.typing?.({ to: "-1001", thread_id: "7" }, false);
		expect(fake.calls.map(({ name, body }) => [name, body])).toEqual([
			["sendChatAction", { chat_id: -1001, message_thread_id: 7, action: "typing" }],
		]);
	});
});

describe("attachments", () => {
	const send = async (contentType: string, data: string, name = "a file.txt") =>
		(await open()).attach?.(
			{ to: "42", reply_to: "5" },
			{ name, contentType, data: Buffer.from(data).toString("base64") },
			sendOptions(),
		);

	test.each([
		["text/plain", "document"],
		["image/png", "photo"],
		["image/gif", "animation"],
		["audio/ogg", "voice"],
		["audio/mpeg", "audio"],
		["video/mp4", "video"],
	])("%s goes as a %s", async (contentType, kind) => {
		await send(contentType, "bytes\r\n--of it");
		const [message] = fake.raw("42");
		expect(message?.file).toMatchObject({ kind, name: "a file.txt" });
		expect(message?.file?.data.toString()).toBe("bytes\r\n--of it");
		expect(message?.replyTo).toBe(5);
	});

	test("a file that Telegram does not take as a picture goes as a document", async () => {
		await send("image/jpeg", "broken picture", "x.jpg");
		expect(fake.raw("42").map(({ file }) => file?.kind)).toEqual(["document"]);
	});
});

describe("faults", () => {
	test.each([
		["chat not found", { to: "404" }, "gone"],
		["blocked by the person", { to: "403" }, "denied"],
		["thread not found", { to: "-1001", thread_id: "404" }, "gone"],
		["not a chat", { to: "no chat" }, "gone"],
	])("%s", async (_, target, fault) => {
		const error = await faultOf((await open()).create(target, "x", sendOptions()));
		expect(error.fault).toBe(fault);
	});

	test("too long, and empty, are invalid", async () => {
		const session = await open();
		expect((await faultOf(session.create({ to: "42" }, "x".repeat(4097), sendOptions()))).fault).toBe("invalid");
		expect((await faultOf(session.create({ to: "42" }, " ", sendOptions()))).fault).toBe("invalid");
		await session.create({ to: "42" }, `<i>${"&amp;".repeat(4096)}</i>`, sendOptions());
		expect(fake.visible("42")[0]).toHaveLength(4096);
	});

	test("an edit of a deleted message: gone", async () => {
		const session = await open();
		const { messageId } = await session.create({ to: "42" }, "x", sendOptions());
		fake.remove("42", Number(messageId));
		expect((await faultOf(session.edit?.({ to: "42" }, messageId, "y", sendOptions()))).fault).toBe("gone");
	});

	test("a wrong token: denied, and what to do", async () => {
		const error = await faultOf((await open({ token: "1:wrong" })).health());
		expect(error).toMatchObject({ fault: "denied", message: expect.stringContaining("@BotFather") });
	});

	test("a connection that broke without a word is given up within a minute, also while polling", async () => {
		const silent = (_url: string, { signal }: RequestInit) =>
			new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
		vi.stubGlobal("fetch", silent);
		vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
		try {
			const polling = createApi("1:a", "http://127.0.0.1:9").getUpdates({ timeout: 25 });
			const ended: string[] = [];
			polling.catch((cause: unknown) => ended.push(String(cause)));
			await vi.advanceTimersByTimeAsync(60_000);
			expect(ended).toEqual([expect.stringContaining("getUpdates")]);
		} finally {
			vi.useRealTimers();
			vi.unstubAllGlobals();
		}
	});
});

test("health says who we are and how messages come", async () => {
	expect(await (await open()).health()).toEqual({ ok: true, detail: "@nexus_bot, polling" });
});

test("a webhook without a secret is refused before anything happens", async () => {
	await expect(open({ webhook_url: "https://example.org/hook" })).rejects.toThrow(/webhook_secret/);
});
