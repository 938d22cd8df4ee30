/** Discord: answers as a message that is edited while it grows, as fast as the channel's bucket allows. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS, IS_BOOLEAN } from "@nexus-stream/adapter/platform/platform";
import { render } from "./format.ts";
import { paceOf } from "./pace.ts";
import { DiscordSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "discord",
		supports: ["monitor", "send", "stream", "health", "typing", "attachments", "ask"],
		limits: { textMax: 2000, unit: "utf16", choicesMax: 25, labelCharsMax: 80 },
		typing: { intervalMs: 5000, expiryMs: 10_000, beside: true },
		reconcile: "nonce",
		public: true,
		settings: [
			{ name: "token", secret: true, required: true, prompt: "Bot token from the developer portal" },
			{
				name: "message_content",
				prompt: "Read messages without a mention too (needs the Message Content Intent)",
				default: "true",
				pattern: IS_BOOLEAN,
			},
			{ name: "api_url", prompt: "API address", default: "https://discord.com/api", pattern: IS_ADDRESS },
		],
	},
	render,
	pace: () => paceOf(undefined, undefined, 0),
	open: (settings, tools) => new DiscordSession(settings, tools),
});
