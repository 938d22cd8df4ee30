/** Gmail: one mail per answer, in the thread of the mail that it answers. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS } from "@nexus-stream/adapter/platform/platform";
import { GmailSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "gmail",
		supports: ["monitor", "send", "health", "attachments", "webhook"],
		// A mail may have 25 MB; this is what people still read as one.
		limits: { textMax: 1_000_000, unit: "utf8" },
		delivery: "whole",
		// Mails carry their nonce, and an account can search what it sent.
		reconcile: "history",
		webhook: { requiredQuery: ["secret"] },
		public: true,
		settings: [
			{ name: "client_id", required: true, prompt: "OAuth client id" },
			{ name: "client_secret", secret: true, required: true, prompt: "OAuth client secret" },
			{ name: "refresh_token", secret: true, required: true, prompt: "OAuth refresh token (scope gmail.modify)" },
			{ name: "from_name", prompt: "Name of the sender", default: "" },
			{
				name: "topic",
				prompt: "Pub/Sub topic for push, projects/…/topics/… (empty: polling only)",
				pattern: "^projects/[^/]+/topics/[^/]+$",
			},
			{
				name: "webhook_secret",
				secret: true,
				prompt: "Secret for ?secret= of the push address",
				when: { name: "topic" },
			},
			{ name: "api_url", prompt: "Gmail API", default: "https://gmail.googleapis.com", pattern: IS_ADDRESS },
			{
				name: "token_url",
				prompt: "OAuth token address",
				default: "https://oauth2.googleapis.com/token",
				pattern: IS_ADDRESS,
			},
		],
	},
	// A mail has two forms, so they are made when it is composed.
	render: (markdown) => markdown,
	// A mail costs 100 of the 6000 quota units that an account has in a minute.
	pace: () => ({ targetIntervalMs: 1200, accountIntervalMs: 1200 }),
	open: (settings, tools) => new GmailSession(settings, tools),
});
