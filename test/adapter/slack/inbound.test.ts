import { describe, expect, test } from "vitest";
import { readEvent, readText, type Threads } from "../../../packages/platforms/src/slack/inbound.ts";

const me = { userId: "UBOT", botId: "BBOT" };
const event = (fields: object, type = "message") => ({
	type: "event_callback",
	team_id: "T1",
	event: { type, channel: "D1", channel_type: "im", user: "U1", text: "hi", ts: "1700000000.000100", ...fields },
});
const read = (fields: object, type?: string, threads: Threads = "channels") =>
	readEvent(event(fields, type), me, threads);
const inChannel = { channel: "C1", channel_type: "channel" };

describe("what is a message", () => {
	test("a direct message", () => {
		expect(read({})).toEqual({
			files: [],
			message: {
				eventId: "D1:1700000000.000100",
				from: { id: "U1" },
				chat: { id: "D1", type: "direct" },
				text: "hi",
				target: { to: "D1", reply_to: "1700000000.000100", direct: true, user_id: "U1", team_id: "T1" },
				ts: 1_700_000_000_000,
			},
		});
	});

	test("a mention comes as a message and as a mention: both are the same message", () => {
		const text = "<@UBOT>  what is <@U2|ann> up to?";
		const messages = [
			read({ ...inChannel, text }),
			read({ ...inChannel, channel_type: undefined, text }, "app_mention"),
		];
		expect(messages[0]?.message).toEqual(messages[1]?.message);
		expect(messages[0]?.message).toMatchObject({
			eventId: "C1:1700000000.000100",
			text: "what is @ann up to?",
			mention: true,
			chat: { type: "group" },
		});
	});

	test("a group message that does not name us is not a mention", () => {
		expect(read({ ...inChannel })?.message.mention).toBe(false);
	});

	test.each([
		["our own", { user: "UBOT" }],
		["another bot's", { bot_id: "B2" }],
		["a change", { subtype: "message_changed" }],
		["someone joining", { subtype: "channel_join" }],
		["hidden", { hidden: true }],
		["empty", { text: "" }],
		["only our name", { text: "<@UBOT>" }],
	])("not: %s", (_, fields) => {
		expect(read(fields)).toBeUndefined();
	});

	test("not: other events", () => {
		expect(read({}, "reaction_added")).toBeUndefined();
		expect(readEvent({ type: "event_callback" }, me, "channels")).toBeUndefined();
	});

	test("a forwarded message says what it forwards, with its files; who is named in it is not addressed", () => {
		const files = [{ name: "a.png", mimetype: "image/png", url_private: "https://files.slack.com/a" }];
		const share = { is_share: true, is_msg_unfurl: true, author_name: "Bo", text: "<@UBOT> it &lt;burns&gt;", files };
		const preview = { is_msg_unfurl: true, author_name: "Cy", text: "a preview of a link" };
		const found = read({ ...inChannel, text: "look", attachments: [share, preview] });
		expect(found).toMatchObject({
			message: { text: "look\n[forwarded from Bo]\nit <burns>", mention: false },
			files: [{ name: "a.png" }],
		});
		expect(read({ text: "", attachments: [{ is_share: true, text: "alone" }] })?.message.text).toBe(
			"[forwarded from somebody]\nalone",
		);
	});

	test("files are named, with or without text", () => {
		const files = [
			{ name: "a.png", mimetype: "image/png", size: 3, url_private_download: "https://files.slack.com/a" },
		];
		expect(read({ text: "", subtype: "file_share", files })).toMatchObject({
			files: [{ name: "a.png", contentType: "image/png", bytes: 3, url: "https://files.slack.com/a" }],
			message: { text: "" },
		});
	});
});

describe("where the answer goes", () => {
	const thread = (fields: object, threads: Threads) => read(fields, "message", threads)?.message.target.thread_id;
	const ts = "1700000000.000100";

	test.each([
		["channels", undefined, ts],
		["always", ts, ts],
		["never", undefined, undefined],
	] as const)("threads %s", (threads, direct, channel) => {
		expect([thread({}, threads), thread(inChannel, threads)]).toEqual([direct, channel]);
	});

	test("a message in a thread is answered there", () => {
		expect(thread({ thread_ts: "1.000001" }, "never")).toBe("1.000001");
	});
});

test.each([
	["a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"],
	["see <https://x.org|the page> or <https://y.org>", "see [the page](https://x.org) or https://y.org"],
	["<https://z.org|https://z.org>", "https://z.org"],
	["<mailto:a@b.org|a@b.org>", "a@b.org"],
	["<!here> <!channel> <!subteam^S1|@devs> <!date^1^{date}|today>", "@here @channel @devs today"],
	["<#C2|general> and <#C3>", "#general and #C3"],
	["  indented stays", "  indented stays"],
])("text %j is read as %j", (said, expected) => {
	expect(readText(said, "UBOT").text).toBe(expected);
});
