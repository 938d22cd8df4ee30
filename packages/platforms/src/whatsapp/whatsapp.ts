/** WhatsApp through Meta's Cloud API: blocks, one after another, because nothing that was sent can be changed. */

import { definePlatform } from "@nexus-stream/adapter";
import { renderMarks, writtenOut } from "@nexus-stream/adapter/markdown/marks";
import { IS_ADDRESS, IS_BOOLEAN } from "@nexus-stream/adapter/platform/platform";
import { CHANNEL_BLOCKS } from "../channels.ts";
import { FULL, paceOf } from "./pace.ts";
import { WhatsAppSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "whatsapp",
		supports: ["monitor", "send", "health", "typing", "attachments", "webhook"],
		limits: { textMax: 4096, unit: "utf16" },
		typing: { intervalMs: 20_000, expiryMs: 25_000 },
		// A model writes about a thousand characters in the six seconds that WhatsApp wants between two messages.
		blocks: CHANNEL_BLOCKS.whatsapp,
		// Statuses tell of messages by their nonce.
		reconcile: "history",
		webhook: { requiredHeaders: ["x-hub-signature-256"] },
		public: true,
		settings: [
			{
				name: "phone_number_id",
				required: true,
				prompt: "Phone number id (digits, from the API set-up page)",
				pattern: "^\\d+$",
			},
			{ name: "access_token", secret: true, required: true, prompt: "Access token of a system user" },
			{ name: "app_secret", secret: true, prompt: "App secret, which signs the webhook (empty: send only)" },
			{
				name: "verify_token",
				secret: true,
				prompt: "Verify token: a word of your choice, for the webhook",
				when: { name: "app_secret" },
			},
			{ name: "quote", prompt: "Quote the message that is answered", default: "false", pattern: IS_BOOLEAN },
			{
				name: "api_url",
				prompt: "Graph API with its version",
				default: "https://graph.facebook.com/v23.0",
				pattern: IS_ADDRESS,
			},
		],
	},
	// WhatsApp makes links of addresses by itself.
	render: (markdown) => renderMarks(markdown, { escape: (text) => text, link: writtenOut, bullet: "- " }),
	pace: () => paceOf(FULL, 0),
	open: (settings, tools) => new WhatsAppSession(settings, tools),
});
