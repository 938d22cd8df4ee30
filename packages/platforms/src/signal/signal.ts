/** Signal through signal-cli: typing while an answer is written, then the answer; or, if wished, a message that is edited while it grows. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { DEFAULT_API_URL } from "./api.ts";
import { measure, render } from "./format.ts";
import { SEND_INTERVAL_MS, SignalSession } from "./session.ts";

const info = {
	channel: "signal",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "stream", "health", "typing", "attachments"],
	fields: ["runId", "offset", "intent"],
	// More becomes a text attachment that people have to open.
	limits: { textMax: 2000, unit: "utf8" },
	typing: { intervalMs: 10_000, expiryMs: 15_000 },
	// By the account's own notes: the servers keep nothing that was sent.
	reconcile: "history",
	public: true,
	settings: [
		{
			name: "number",
			secret: false,
			required: true,
			prompt: "Number of the Signal account (+15551234567)",
			pattern: "^\\+\\d{5,15}$",
		},
		{
			name: "api_url",
			secret: false,
			required: false,
			prompt: "signal-cli daemon --http",
			default: DEFAULT_API_URL,
			pattern: "^https?://\\S+$",
		},
		{
			name: "drafts",
			secret: false,
			required: false,
			prompt: "Edit a message while it grows",
			default: "false",
			pattern: "^(true|false)$",
		},
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	pace: () => ({ targetIntervalMs: SEND_INTERVAL_MS }),
	open: (account, tools) => new SignalSession(settingsOf(info, account), tools),
};
