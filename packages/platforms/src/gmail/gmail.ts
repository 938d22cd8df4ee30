/** Gmail: one mail per answer, in the thread of the mail that it answers. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { DEFAULT_API_URL, DEFAULT_TOKEN_URL } from "./api.ts";
import { measure, render } from "./format.ts";
import { GmailSession } from "./session.ts";

const info = {
	channel: "gmail",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "health", "attachments", "webhook"],
	fields: ["runId", "offset", "intent"],
	// A mail may have 25 MB; this is what people still read as one.
	limits: { textMax: 1_000_000, unit: "utf8" },
	delivery: "whole",
	// Mails carry their nonce, and an account can search what it sent.
	reconcile: "history",
	webhook: { requiredQuery: ["secret"] },
	public: true,
	settings: [
		{ name: "client_id", secret: false, required: true, prompt: "OAuth client id" },
		{ name: "client_secret", secret: true, required: true, prompt: "OAuth client secret" },
		{ name: "refresh_token", secret: true, required: true, prompt: "OAuth refresh token (scope gmail.modify)" },
		{ name: "from_name", secret: false, required: false, prompt: "Name of the sender", default: "" },
		{
			name: "topic",
			secret: false,
			required: false,
			prompt: "Pub/Sub topic for push, projects/…/topics/… (empty: polling only)",
			pattern: "^projects/[^/]+/topics/[^/]+$",
		},
		{
			name: "webhook_secret",
			secret: true,
			required: false,
			prompt: "Secret for ?secret= of the push address",
			when: { name: "topic" },
		},
		{
			name: "api_url",
			secret: false,
			required: false,
			prompt: "Gmail API",
			default: DEFAULT_API_URL,
			pattern: "^https?://\\S+$",
		},
		{
			name: "token_url",
			secret: false,
			required: false,
			prompt: "OAuth token address",
			default: DEFAULT_TOKEN_URL,
			pattern: "^https?://\\S+$",
		},
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	// A mail costs 100 of the 6000 quota units that an account has in a minute.
	pace: () => ({ targetIntervalMs: 1200, accountIntervalMs: 1200 }),
	open: (account, tools) => new GmailSession(settingsOf(info, account), tools),
};
