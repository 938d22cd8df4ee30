/** Text messages through Twilio: blocks, one after another, because nothing that was sent can be changed. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { CHANNEL_BLOCKS } from "../channels.ts";
import { DEFAULT_API_URL } from "./api.ts";
import { measure, render } from "./format.ts";
import { SmsSession } from "./session.ts";

const info = {
	channel: "sms",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "health", "webhook"],
	fields: ["runId", "offset", "intent"],
	limits: { textMax: 1600, unit: "sms" },
	blocks: CHANNEL_BLOCKS.sms,
	// Twilio lists what was sent to a number, with its text.
	reconcile: "history",
	webhook: { requiredHeaders: ["x-twilio-signature"] },
	public: true,
	settings: [
		{ name: "account_sid", secret: false, required: true, prompt: "Account SID (AC…)", pattern: "^AC\\S+$" },
		{ name: "auth_token", secret: true, required: true, prompt: "Auth token; it also signs webhooks" },
		{
			name: "from",
			secret: false,
			required: true,
			prompt: "Your number (+15551234567) or messaging service (MG…)",
			pattern: "^(\\+\\d{3,15}|\\d{3,8}|[A-Za-z][\\w ]+)$",
		},
		{
			name: "webhook_url",
			secret: false,
			required: false,
			prompt: "Public webhook address, https://…, as Twilio calls it (empty: send only)",
			pattern: "^https?://\\S+$",
		},
		{
			name: "api_url",
			secret: false,
			required: false,
			prompt: "Twilio API",
			default: DEFAULT_API_URL,
			pattern: "^https?://\\S+$",
		},
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	// A number sends about one segment a second; what comes faster waits at Twilio.
	pace: () => ({ targetIntervalMs: 1000 }),
	open: (account, tools) => new SmsSession(settingsOf(info, account), tools),
};
