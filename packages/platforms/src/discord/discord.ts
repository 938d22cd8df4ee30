/** Discord: answers as a message that is edited while it grows, as fast as the channel's bucket allows. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { measure, render } from "./format.ts";
import { paceOf } from "./pace.ts";
import { DEFAULT_API_URL } from "./rest.ts";
import { DiscordSession } from "./session.ts";

const info = {
	channel: "discord",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "stream", "health", "typing", "attachments", "ask"],
	fields: ["runId", "offset", "intent"],
	limits: { textMax: 2000, unit: "utf16", choicesMax: 25, labelCharsMax: 80 },
	typing: { intervalMs: 5000, expiryMs: 10_000, beside: true },
	reconcile: "nonce",
	public: true,
	settings: [
		{ name: "token", secret: true, required: true, prompt: "Bot token from the developer portal" },
		{
			name: "message_content",
			secret: false,
			required: false,
			prompt: "Read messages without a mention too (needs the Message Content Intent)",
			default: "true",
			pattern: "^(true|false)$",
		},
		{
			name: "api_url",
			secret: false,
			required: false,
			prompt: "API address",
			default: DEFAULT_API_URL,
			pattern: "^https?://\\S+$",
		},
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	pace: () => paceOf(undefined, undefined, 0),
	open: (account, tools) => new DiscordSession(settingsOf(info, account), tools),
};
