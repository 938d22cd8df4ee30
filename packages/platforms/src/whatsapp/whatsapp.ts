/** WhatsApp through Meta's Cloud API: blocks, one after another, because nothing that was sent can be changed. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { CHANNEL_BLOCKS } from "../channels.ts";
import { DEFAULT_API_URL } from "./api.ts";
import { measure, render } from "./format.ts";
import { FULL, paceOf } from "./pace.ts";
import { WhatsAppSession } from "./session.ts";

const info = {
	channel: "whatsapp",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "health", "typing", "attachments", "webhook"],
	fields: ["runId", "offset", "intent"],
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
			secret: false,
			required: true,
			prompt: "Phone number id (digits, from the API set-up page)",
			pattern: "^\\d+$",
		},
		{ name: "access_token", secret: true, required: true, prompt: "Access token of a system user" },
		{
			name: "app_secret",
			secret: true,
			required: false,
			prompt: "App secret, which signs the webhook (empty: send only)",
		},
		{
			name: "verify_token",
			secret: true,
			required: false,
			prompt: "Verify token: a word of your choice, for the webhook",
			when: { name: "app_secret" },
		},
		{
			name: "quote",
			secret: false,
			required: false,
			prompt: "Quote the message that is answered",
			default: "false",
			pattern: "^(true|false)$",
		},
		{
			name: "api_url",
			secret: false,
			required: false,
			prompt: "Graph API with its version",
			default: DEFAULT_API_URL,
			pattern: "^https?://\\S+$",
		},
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	pace: () => paceOf(FULL, 0),
	open: (account, tools) => new WhatsAppSession(settingsOf(info, account), tools),
};
