import type { Update } from "grammy/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTelegramFake, type TelegramFake } from "../../../packages/lab/src/telegram/telegram.ts";
import { readUpdate } from "../../../packages/platforms/src/telegram/inbound.ts";
import { platform } from "../../../packages/platforms/src/telegram/telegram.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { until } from "../../until.ts";
import { listenTo, openSession, unsafe } from "../session.ts";

const ME = { id: 7, username: "Nexus_bot" };
const PRIVATE = { id: 42, type: "private", first_name: "Ann" };
const GROUP = { id: -1001, type: "supergroup", title: "Team" };

const update = (message: object): Update =>
	({
		update_id: 1,
		message: {
			message_id: 5,
			date: 1_700_000_000,
			chat: PRIVATE,
			from: { id: 42, is_bot: false, first_name: "Ann", last_name: "Lee" },
			...message,
		},
	}) as unknown as Update;

describe("an update as a message", () => {
	test("in a private chat", () => {
		expect(readUpdate(update({ text: "hi" }), ME)).toEqual({
			files: [],
			message: {
				eventId: "42:5",
				from: { id: "42", name: "Ann Lee" },
				chat: { id: "42", type: "direct" },
				text: "hi",
				target: { to: "42", direct: true },
				ts: 1_700_000_000_000,
			},
		});
	});

	test("in a topic of a group: named, answered in its thread, mention taken out", () => {
		const text = "hey @nexus_bot what is up";
		const entities = [{ type: "mention", offset: 4, length: 10 }];
		const topic = { is_topic_message: true, message_thread_id: 9 };
		const found = readUpdate(update({ chat: GROUP, text, entities, ...topic }), ME)?.message;
		expect(found).toMatchObject({
			chat: { id: "-1001", type: "group", name: "Team" },
			text: "hey what is up",
			mention: true,
			target: { to: "-1001", thread_id: "9", reply_to: "5", direct: false },
		});
	});

	test.each([
		[
			"a command with the bot's name",
			{ text: "/ask@nexus_bot why", entities: [{ type: "bot_command", offset: 0, length: 14 }] },
			"/ask why",
		],
		[
			"a person's name that is the bot",
			{ text: "🙂 Nexus hi", entities: [{ type: "text_mention", offset: 3, length: 5, user: { id: 7 } }] },
			"🙂 hi",
		],
		["an answer to the bot", { text: "and then?", reply_to_message: { from: { id: 7 } } }, "and then?"],
		[
			"a mention in a caption",
			{
				caption: "@nexus_bot look",
				caption_entities: [{ type: "mention", offset: 0, length: 10 }],
				photo: [{ file_id: "f" }],
			},
			"look",
		],
	])("%s addresses it", (_, fields, text) => {
		expect(readUpdate(update({ chat: GROUP, ...fields }), ME)?.message).toMatchObject({ text, mention: true });
	});

	test.each([
		[
			"somebody's message",
			{ reply_to_message: { from: { id: 9, first_name: "Bo" }, text: "We ship\non Friday" } },
			"Bo: We ship on Friday",
		],
		[
			"a channel's post",
			{ reply_to_message: { sender_chat: { id: -1, title: "News" }, caption: "Rain" } },
			"News: Rain",
		],
		[
			"a part of ours",
			{ reply_to_message: { from: { id: 7 }, text: "a b" }, quote: { text: "b", is_manual: true } },
			"you: b",
		],
		["a message of another chat", { external_reply: {}, quote: { text: "b", is_manual: true } }, "somebody: b"],
	])("an answer to %s says what is answered", (_, fields, told) => {
		expect(readUpdate(update({ text: "why?", ...fields }), ME)?.message.text).toBe(`why?\n[in reply to ${told}]`);
	});

	test("an answer to ours, or to a topic's beginning, says nothing more; a mere mention in an answer says something", () => {
		expect(
			readUpdate(update({ text: "why?", reply_to_message: { from: { id: 7 }, text: "a" } }), ME)?.message.text,
		).toBe("why?");
		const topic = { from: { id: 9, first_name: "Bo" }, forum_topic_created: { name: "t" } };
		expect(readUpdate(update({ text: "why?", reply_to_message: topic }), ME)?.message.text).toBe("why?");
		const mention = { text: "@nexus_bot", entities: [{ type: "mention", offset: 0, length: 10 }] };
		const replied = { reply_to_message: { from: { id: 9, first_name: "Bo" }, text: "x".repeat(2000) } };
		const found = readUpdate(update({ chat: GROUP, ...mention, ...replied }), ME)?.message;
		expect(found).toMatchObject({ text: `[in reply to Bo: ${"x".repeat(1000)}…]`, mention: true });
	});

	test("another user's mention does not address us", () => {
		const entities = [{ type: "mention", offset: 0, length: 6 }];
		expect(readUpdate(update({ chat: GROUP, text: "@other hi", entities }), ME)?.message).toMatchObject({
			text: "@other hi",
			mention: false,
		});
	});

	test.each([
		["our own", { from: { id: 7, is_bot: true, first_name: "N" }, text: "x" }],
		["another bot's", { from: { id: 8, is_bot: true, first_name: "B" }, text: "x" }],
		["a service message", { new_chat_title: "x" }],
	])("%s is ignored", (_, fields) => {
		expect(readUpdate(update(fields), ME)).toBeUndefined();
	});

	test("an edited message is not a new one", () => {
		const { message, ...rest } = update({ text: "x" });
		expect(readUpdate({ ...rest, edited_message: message } as unknown as Update, ME)).toBeUndefined();
	});

	test("an anonymous admin speaks as the group", () => {
		const from = { id: 1087968824, is_bot: true, first_name: "Group" };
		const found = readUpdate(update({ chat: GROUP, from, sender_chat: GROUP, text: "x" }), ME)?.message;
		expect(found?.from).toEqual({ id: "-1001", name: "Team" });
	});

	test("files are named once, with type and size", () => {
		const animation = { file_id: "a", mime_type: "video/mp4", file_size: 5 };
		expect(readUpdate(update({ animation, document: animation }), ME)?.files).toEqual([
			{ fileId: "a", name: "animation.mp4", contentType: "video/mp4", bytes: 5 },
		]);
		const photo = [{ file_id: "small" }, { file_id: "large" }];
		expect(readUpdate(update({ photo }), ME)?.files.map(({ fileId }) => fileId)).toEqual(["large"]);
	});

	test.each([
		[
			"a moving sticker",
			{ sticker: { file_id: "s", is_animated: true, is_video: false, emoji: "👍" } },
			"[sticker 👍]",
		],
		["a filmed one without an emoji", { sticker: { file_id: "s", is_animated: false, is_video: true } }, "[sticker]"],
		["a poll", { poll: { question: "Tea?", options: [{ text: "yes" }, { text: "no" }] } }, "[poll Tea?: yes / no]"],
		["a die", { dice: { emoji: "🎲", value: 4 } }, "[🎲 4]"],
		["a story", { story: { id: 1 } }, "[story]"],
		["a contact", { contact: { first_name: "Bo", phone_number: "+491" } }, "[contact Bo +491]"],
		["a place", { location: { latitude: 52.5, longitude: 13.4 } }, "[location 52.5, 13.4]"],
		[
			"a named place",
			{ location: { latitude: 1, longitude: 2 }, venue: { title: "Café", address: "Main St 1" } },
			"[location 1, 2 Café, Main St 1]",
		],
	])("%s is described in words", (_, message, text) => {
		expect(readUpdate(update(message), ME)).toMatchObject({ files: [], message: { text } });
	});
});

describe("from the platform", () => {
	let fake: TelegramFake;

	beforeEach(async () => {
		fake = await createTelegramFake();
	});
	afterEach(() => fake.close());

	const open = (settings: Record<string, string> = {}) =>
		openSession(platform, { ...fake.settings, ...settings }, { clock: systemClock });

	test("polling: a message is confirmed only when it is safe, and comes again when it was not", async () => {
		await fake.inject({ text: "one" });
		const first = listenTo(await open(), unsafe);
		await first.hears(1);
		await first.stop();
		expect(fake.pending()).toBe(1);
		const safe = listenTo(await open());
		await safe.hears(1);
		await fake.inject({ text: "two" });
		await safe.hears(2);
		await until("both are confirmed", () => fake.pending() === 0);
		await safe.stop();
		expect([...first.texts(), ...safe.texts()]).toEqual(["one", "one", "two"]);
		expect(first.seen[0]?.eventId).toBe(safe.seen[0]?.eventId);
	});

	test("polling continues after failures, and takes an old webhook away", async () => {
		fake.fault({ kind: "5xx", count: 1, call: "deleteWebhook" });
		const polling = listenTo(await open());
		await fake.inject({ text: "late" });
		await polling.hears(1);
		await polling.stop();
		expect(fake.calls.filter(({ name }) => name === "deleteWebhook")).toHaveLength(2);
	});

	test("polling with a wrong token ends with the reason", async () => {
		const session = await open({ token: "1:wrong" });
		await expect(session.monitor?.(unsafe, new AbortController().signal)).rejects.toMatchObject({ fault: "denied" });
	});

	test("attachments are fetched; one that is too large is named", async () => {
		const { seen, hears, stop } = listenTo(await open());
		await fake.inject({ text: "read this", file: Buffer.from("content"), fileName: "a.txt" });
		await fake.inject({ text: "and this", file: Buffer.from("x"), fileBytes: 99_000_000, fileName: "b.txt" });
		await hears(2);
		await stop();
		expect(seen[0]?.attachments).toEqual([
			{ name: "a.txt", contentType: "text/plain", data: Buffer.from("content").toString("base64") },
		]);
		expect(seen[1]?.text).toBe("and this\n[attachment b.txt is too large: 99000000 bytes]");
		expect(seen[1]?.attachments).toBeUndefined();
	});

	test("webhook: stopped while it is announced, it ends at once", async () => {
		const session = await open({ webhook_url: "https://example.org/hook", webhook_secret: "s3cret" });
		await session.monitor?.(unsafe, AbortSignal.abort());
		expect(fake.calls.map(({ name }) => name)).toEqual(["setWebhook"]);
	});

	test("webhook: announced with its secret; right secret in, wrong or no secret out", async () => {
		const session = await open({ webhook_url: "https://example.org/hook", webhook_secret: "s3cret" });
		const { stop } = listenTo(session);
		await until("the webhook is set", () =>
			fake.calls.some(({ name, status }) => name === "setWebhook" && status === 200),
		);
		expect(fake.calls.find(({ name }) => name === "setWebhook")?.body).toEqual({
			url: "https://example.org/hook",
			secret_token: "s3cret",
			allowed_updates: ["message", "callback_query"],
		});
		const request = (secret: string | undefined, body: string, method = "POST", asked = session) => {
			const headers: Record<string, string> = secret === undefined ? {} : { "x-telegram-bot-api-secret-token": secret };
			return asked.webhook?.({ method, query: new URLSearchParams(), headers, body: Buffer.from(body) });
		};
		const good = JSON.stringify(update({ text: "hi" }));
		expect(await request("s3cret", good)).toMatchObject({ status: 200, messages: [{ eventId: "42:5", text: "hi" }] });
		// Telegram repeats an update until it is confirmed: the same event.
		expect(await request("s3cret", good)).toMatchObject({ messages: [{ eventId: "42:5" }] });
		expect(await request("wrong", good)).toMatchObject({ status: 401, messages: [] });
		expect(await request(undefined, good)).toMatchObject({ status: 401, messages: [] });
		expect(await request("s3cret", "{")).toMatchObject({ status: 400, messages: [] });
		expect(await request("s3cret", good, "GET")).toMatchObject({ status: 405, messages: [] });
		expect(await request(undefined, good, "POST", await open())).toMatchObject({ status: 401, messages: [] });
		await stop();
	});
});
