/** Slack: answers as a native stream in threads, elsewhere as a message that is edited while it grows. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS } from "@nexus-stream/adapter/platform/platform";
import { render } from "./format.ts";
import { paceOf } from "./pace.ts";
import { SlackSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "slack",
		supports: ["monitor", "send", "stream", "health", "typing", "attachments", "webhook", "ask"],
		// Slack takes more and shows it badly.
		limits: { textMax: 4000, unit: "utf16", choicesMax: 25, labelCharsMax: 75 },
		typing: { intervalMs: 60_000, expiryMs: 120_000, text: true },
		// Messages carry their nonce as metadata, and an app can read what it wrote.
		reconcile: "history",
		webhook: { requiredHeaders: ["x-slack-signature", "x-slack-request-timestamp"] },
		// Only members of the workspace can write to an app.
		public: false,
		settings: [
			{ name: "bot_token", secret: true, required: true, prompt: "Bot token (xoxb-…)", pattern: "^xoxb-\\S+$" },
			{
				name: "app_token",
				secret: true,
				prompt: "App token (xapp-…) for Socket Mode (empty: webhook)",
				pattern: "^xapp-\\S+$",
			},
			{
				name: "signing_secret",
				secret: true,
				prompt: "Signing secret, for the webhook",
				when: { name: "app_token", is: "" },
			},
			{
				name: "streaming",
				prompt: "native, direct (native in direct messages only) or update",
				default: "native",
				pattern: "^(native|direct|update)$",
			},
			{
				name: "threads",
				prompt: "Answer in a thread: channels, always or never",
				default: "channels",
				pattern: "^(channels|always|never)$",
			},
			{ name: "api_url", prompt: "Web API", default: "https://slack.com/api/", pattern: IS_ADDRESS },
		],
	},
	render,
	pace: () => paceOf("edit", 1),
	open: (settings, tools) => new SlackSession(settings, tools),
});
