/** Telegram: answers as a message that is edited while it grows, or as a native draft in private chats. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS, IS_BOOLEAN } from "@nexus-stream/adapter/platform/platform";
import { measure, render, TEXT_MAX } from "./format.ts";
import { paceOf } from "./pace.ts";
import { isDirect, TelegramSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "telegram",
		supports: ["monitor", "send", "stream", "health", "typing", "attachments", "webhook", "ask"],
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
			{ name: "webhook_url", prompt: "Public webhook address, https://… (empty: polling)", pattern: "^https://\\S+$" },
			{
				name: "webhook_secret",
				secret: true,
				required: true,
				prompt: "Webhook secret of your choice: letters, digits, _ and -",
				pattern: "^[\\w-]{1,256}$",
				when: { name: "webhook_url" },
			},
			{ name: "drafts", prompt: "Native drafts in private chats", default: "false", pattern: IS_BOOLEAN },
			{ name: "api_url", prompt: "Bot API server", default: "https://api.telegram.org", pattern: IS_ADDRESS },
		],
	},
	render,
	measure,
	pace: (target) => paceOf(undefined, isDirect(target), 0),
	open: (settings, tools) => new TelegramSession(settings, tools),
});
