/** Telegram: answers as a message that is edited while it grows, or as a native draft in private chats. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { DEFAULT_API_URL } from "./api.ts";
import { measure, render, TEXT_MAX } from "./format.ts";
import { paceOf } from "./pace.ts";
import { isDirect, TelegramSession } from "./session.ts";

const info = {
	channel: "telegram",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "stream", "health", "typing", "attachments", "webhook", "ask"],
	fields: ["runId", "offset", "intent"],
	limits: { textMax: TEXT_MAX, unit: "utf16", choicesMax: 20, labelCharsMax: 60 },
	typing: { intervalMs: 3000, expiryMs: 5000, beside: true },
	// By the account's own notes: bots cannot read a chat's history.
	reconcile: "history",
	webhook: { requiredHeaders: ["x-telegram-bot-api-secret-token"] },
	public: true,
	settings: [
		{
			name: "token",
			secret: true,
			required: true,
			prompt: "Bot token from @BotFather (123456:ABC…)",
			pattern: "^\\d+:\\S+$",
		},
		{
			name: "webhook_url",
			secret: false,
			required: false,
			prompt: "Public webhook address, https://… (empty: polling)",
			pattern: "^https://\\S+$",
		},
		{
			name: "webhook_secret",
			secret: true,
			required: true,
			prompt: "Webhook secret of your choice: letters, digits, _ and -",
			pattern: "^[\\w-]{1,256}$",
			when: { name: "webhook_url" },
		},
		{
			name: "drafts",
			secret: false,
			required: false,
			prompt: "Native drafts in private chats",
			default: "false",
			pattern: "^(true|false)$",
		},
		{
			name: "api_url",
			secret: false,
			required: false,
			prompt: "Bot API server",
			default: DEFAULT_API_URL,
			pattern: "^https?://\\S+$",
		},
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	pace: (target) => paceOf(undefined, isDirect(target), 0),
	open: (account, tools) => new TelegramSession(settingsOf(info, account), tools),
};
