/** A28: the forms in which a command reaches us in a group of each platform that has mentions. */

import { expect, test } from "vitest";
import { commandIn } from "../../../packages/daemon/src/nex/inbox/commands.ts";
import { readMessage } from "../../../packages/platforms/src/discord/inbound.ts";
import { readText } from "../../../packages/platforms/src/slack/inbound.ts";
import { readUpdate } from "../../../packages/platforms/src/telegram/inbound.ts";
import { messageOf } from "./rig.ts";

const inGroup = (said: { text: string; mention?: boolean } | undefined) =>
	said &&
	commandIn({ channel: "c", account: "a", message: messageOf(said.text, { ...GROUP, mention: !!said.mention }) });
const GROUP = { chat: { id: "g", type: "group" as const } };

const telegram = (text: string, length: number) =>
	readUpdate(
		{
			update_id: 1,
			message: {
				message_id: 5,
				date: 1,
				chat: { id: -1, type: "group", title: "T" },
				text,
				from: { id: 42, is_bot: false, first_name: "Ann" },
				entities: [{ type: "bot_command", offset: 0, length }],
			},
		} as never,
		{ id: 7, username: "nexus_bot" },
	)?.message;

test("Telegram: /stop@bot is ours, another bot's and one without a bot are not", () => {
	expect(inGroup(telegram("/stop@nexus_bot", 15))).toBe("/stop");
	expect(inGroup(telegram("/stop@other_bot", 15))).toBeUndefined();
	expect(inGroup(telegram("/stop", 5))).toBeUndefined();
});

test("Slack: a mention and an exclamation mark, because Slack keeps the slash", () => {
	expect(inGroup(readText("<@UBOT> !status", "UBOT"))).toBe("/status");
	expect(inGroup(readText("<@UELSE> !status", "UBOT"))).toBeUndefined();
});

test("Discord: the same", () => {
	const data = (content: string, mentioned: string[]) =>
		readMessage(
			{
				id: "1",
				channel_id: "2",
				guild_id: "3",
				content,
				type: 0,
				timestamp: "2026-01-01T00:00:00Z",
				author: { id: "9", username: "ann", global_name: "Ann" },
				attachments: [],
				mentions: mentioned.map((id) => ({ id, username: id, global_name: null })),
			} as never,
			{ id: "8" },
		)?.message;
	expect(inGroup(data("<@8> !new", ["8"]))).toBe("/new");
	expect(inGroup(data("!new", []))).toBeUndefined();
});
