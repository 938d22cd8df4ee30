/** Signal through signal-cli: typing while an answer is written, then the answer; or, if wished, a message that is edited while it grows. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS, IS_BOOLEAN } from "@nexus-stream/adapter/platform/platform";
import { SEND_INTERVAL_MS, SignalSession } from "./session.ts";

export const platform = definePlatform({
	info: {
		channel: "signal",
		supports: ["monitor", "send", "stream", "health", "typing", "attachments"],
		// More becomes a text attachment that people have to open.
		limits: { textMax: 2000, unit: "utf8" },
		typing: { intervalMs: 10_000, expiryMs: 15_000 },
		// By the account's own notes: the servers keep nothing that was sent.
		reconcile: "history",
		public: true,
		settings: [
			{
				name: "number",
				required: true,
				prompt: "Number of the Signal account (+15551234567)",
				pattern: "^\\+\\d{5,15}$",
			},
			{ name: "api_url", prompt: "signal-cli daemon --http", default: "http://127.0.0.1:8080", pattern: IS_ADDRESS },
			{ name: "drafts", prompt: "Edit a message while it grows", default: "false", pattern: IS_BOOLEAN },
		],
	},
	pace: () => ({ targetIntervalMs: SEND_INTERVAL_MS }),
	open: (settings, tools) => new SignalSession(settings, tools),
});
