/** Text messages through Twilio: blocks, one after another, because nothing that was sent can be changed. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS } from "@nexus-stream/adapter/platform/platform";
import { CHANNEL_BLOCKS } from "../channels.ts";
import { SmsSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "sms",
		supports: ["monitor", "send", "health", "webhook"],
		limits: { textMax: 1600, unit: "sms" },
		blocks: CHANNEL_BLOCKS.sms,
		// Twilio lists what was sent to a number, with its text.
		reconcile: "history",
		webhook: { requiredHeaders: ["x-twilio-signature"] },
		public: true,
		settings: [
			{ name: "account_sid", required: true, prompt: "Account SID (AC…)", pattern: "^AC\\S+$" },
			{ name: "auth_token", secret: true, required: true, prompt: "Auth token; it also signs webhooks" },
			{
				name: "from",
				required: true,
				prompt: "Your number (+15551234567) or messaging service (MG…)",
				pattern: "^(\\+\\d{3,15}|\\d{3,8}|[A-Za-z][\\w ]+)$",
			},
			{
				name: "webhook_url",
				prompt: "Public webhook address, https://…, as Twilio calls it (empty: send only)",
				pattern: IS_ADDRESS,
			},
			{ name: "api_url", prompt: "Twilio API", default: "https://api.twilio.com", pattern: IS_ADDRESS },
		],
	},
	// A number sends about one segment a second; what comes faster waits at Twilio.
	pace: () => ({ targetIntervalMs: 1000 }),
	open: (settings, tools) => new SmsSession(settings, tools),
});
