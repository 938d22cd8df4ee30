import type { GatewayMessageCreateDispatchData } from "discord-api-types/v10";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDiscordFake, type DiscordFake } from "../../../packages/lab/src/discord/discord.ts";
import { platform } from "../../../packages/platforms/src/discord/discord.ts";
import { readMessage } from "../../../packages/platforms/src/discord/inbound.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { until } from "../../until.ts";
import { listenTo, memory, openSession, unsafe } from "../session.ts";

const ME = { id: "7" };
const ANN = { id: "42", username: "ann", global_name: "Ann" };

const data = (fields: object): GatewayMessageCreateDispatchData =>
	({
		id: "1000",
		channel_id: "77",
		type: 0,
		author: ANN,
		content: "hi",
		mentions: [],
		attachments: [],
		timestamp: "2025-01-02T03:04:05.000Z",
		...fields,
	}) as unknown as GatewayMessageCreateDispatchData;

describe("a dispatch as a message", () => {
	test("a direct message", () => {
		expect(readMessage(data({}), ME)).toEqual({
			files: [],
			message: {
				eventId: "1000",
				from: { id: "42", name: "Ann" },
				chat: { id: "77", type: "direct" },
				text: "hi",
				target: { to: "77", user_id: "42", direct: true, since: "1000" },
				ts: Date.parse("2025-01-02T03:04:05.000Z"),
			},
		});
	});

	test("a mention in a server: taken out and flagged, other names readable, the answer a reply", () => {
		const mentions = [
			{ id: "7", username: "nexus" },
			{ id: "9", username: "bo", global_name: "Bo" },
		];
		const found = readMessage(
			data({ guild_id: "5", member: { nick: "Annie" }, content: "<@7> ask <@!9> now", mentions }),
			ME,
		);
		expect(found?.message).toMatchObject({
			from: { id: "42", name: "Annie" },
			chat: { id: "77", type: "group" },
			text: "ask @Bo now",
			mention: true,
			target: { to: "77", reply_to: "1000", direct: false },
		});
	});

	test("a forwarded message says what it forwards, with its files", () => {
		const file = { filename: "a.txt", size: 3, url: "https://cdn.example/a.txt" };
		const message_snapshots = [{ message: { content: "look at this", attachments: [file] } }];
		const found = readMessage(data({ content: "", message_snapshots }), ME);
		expect(found).toMatchObject({ message: { text: "look at this" }, files: [{ name: "a.txt", bytes: 3 }] });
	});

	test("a sticker and a poll are described in words, forwarded ones too", () => {
		const sticker_items = [{ id: "1", name: "wave", format_type: 1 }];
		const answers = ["yes", "no"].map((text) => ({ poll_media: { text } }));
		const poll = { question: { text: "Tea?" }, answers };
		const found = readMessage(data({ content: "", sticker_items, poll }), ME);
		expect(found?.message.text).toBe("[sticker wave]\n[poll Tea?: yes / no]");
		const message_snapshots = [{ message: { content: "", attachments: [], sticker_items } }];
		expect(readMessage(data({ content: "", message_snapshots }), ME)?.message.text).toBe("[sticker wave]");
	});

	test("an answer to the bot addresses it, other messages do not", () => {
		const referenced_message = { author: { id: "7" } };
		expect(readMessage(data({ guild_id: "5", type: 19, referenced_message }), ME)?.message.mention).toBe(true);
		expect(readMessage(data({ guild_id: "5" }), ME)?.message.mention).toBe(false);
	});

	test("a reply to another person quotes what it answers", () => {
		const referenced_message = { author: { id: "9", username: "bo", global_name: "Bo" }, content: "We ship on Friday" };
		const found = readMessage(data({ type: 19, content: "why?", referenced_message }), ME);
		expect(found?.message.text).toBe("why?\n[in reply to Bo: We ship on Friday]");
		const ours = { author: { id: "7", username: "nexus" }, content: "a" };
		expect(readMessage(data({ type: 19, content: "why?", referenced_message: ours }), ME)?.message.text).toBe("why?");
	});

	test.each([
		["our own", { author: { id: "7", username: "nexus" } }],
		["another bot's", { author: { ...ANN, bot: true } }],
		["a webhook's", { webhook_id: "3" }],
		["a system message", { type: 7 }],
		["one without content", { content: "" }],
	])("%s is ignored", (_, fields) => {
		expect(readMessage(data(fields), ME)).toBeUndefined();
	});
});

describe("from the gateway", () => {
	let fake: DiscordFake;
	let state: ReturnType<typeof memory>;

	beforeEach(async () => {
		fake = await createDiscordFake();
		state = memory();
	});
	afterEach(() => fake.close());

	const open = (settings: Record<string, string> = {}) =>
		openSession(platform, { ...fake.settings, ...settings }, { clock: systemClock, state });

	const connected = () => until("the gateway is connected", () => fake.gateway.connections === 1);

	test("messages come in order; what was not safe comes again to the next process, what was does not", async () => {
		const first = listenTo(await open(), async ({ text }) => (text === "two" ? unsafe() : undefined));
		await connected();
		for (const text of ["one", "two", "three"]) await fake.inject({ text });
		// A message that is not safe yet does not delay the later ones, but they are not confirmed before it.
		await first.hears(3);
		await first.stop();
		await until("the gateway is left", () => fake.gateway.connections === 0);
		await fake.inject({ text: "four" });
		const next = listenTo(await open());
		await next.hears(3);
		await next.stop();
		expect(first.texts()).toEqual(["one", "two", "three"]);
		expect(next.texts()).toEqual(["two", "three", "four"]);
		expect(fake.gateway.begun).toEqual(["identify", "resume"]);
	});

	test("a dropped connection is resumed without loss", async () => {
		const { hears, stop } = listenTo(await open());
		await connected();
		fake.gateway.drop(4000);
		await fake.inject({ text: "meanwhile" });
		await hears(1);
		await stop();
		expect(fake.gateway.begun).toEqual(["identify", "resume"]);
	});

	test("attachments are fetched; one that is too large is named", async () => {
		const { seen, hears, stop } = listenTo(await open());
		await connected();
		await fake.inject({ text: "read", file: Buffer.from("content"), fileName: "a.txt" });
		await fake.inject({ text: "and", file: Buffer.from("x"), fileBytes: 99_000_000, fileName: "b.txt" });
		await hears(2);
		await stop();
		expect(seen[0]?.attachments).toEqual([
			{ name: "a.txt", contentType: "text/plain", data: Buffer.from("content").toString("base64") },
		]);
		expect(seen[1]?.text).toBe("and\n[attachment b.txt is too large: 99000000 bytes]");
	});

	test("stopped before it is connected, it ends at once", async () => {
		await (await open()).monitor?.(unsafe, AbortSignal.abort());
		expect(fake.gateway.begun).toEqual([]);
	});

	test("a wrong token ends with the reason", async () => {
		const session = await open({ token: "wrong" });
		await expect(session.monitor?.(unsafe, new AbortController().signal)).rejects.toMatchObject({ fault: "denied" });
	});

	test("without the privileged intent: the reason and the way out, and the way out works", async () => {
		await fake.close();
		fake = await createDiscordFake({ messageContent: false });
		const refused = (await open()).monitor?.(unsafe, new AbortController().signal);
		await expect(refused).rejects.toMatchObject({
			fault: "denied",
			message: expect.stringContaining("message_content"),
		});
		const { stop } = listenTo(await open({ message_content: "false" }));
		await connected();
		await stop();
	});
});
