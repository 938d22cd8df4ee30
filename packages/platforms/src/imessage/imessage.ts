/** iMessage through a Mac: blocks, because without Apple's private interfaces nothing that was sent can be changed. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { CHANNEL_BLOCKS } from "../channels.ts";
import { measure, render } from "./format.ts";
import { IMessageSession } from "./session.ts";

const info = {
	channel: "imessage",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "health", "attachments", "webhook"],
	fields: ["runId", "offset", "intent"],
	limits: { textMax: 10_000, unit: "utf16" },
	blocks: CHANNEL_BLOCKS.imessage,
	// The Mac keeps what was sent.
	reconcile: "history",
	webhook: { requiredQuery: ["secret"] },
	public: true,
	settings: [
		{
			name: "backend",
			secret: false,
			required: false,
			prompt: "bluebubbles or imsg",
			default: "bluebubbles",
			pattern: "^(bluebubbles|imsg)$",
		},
		{
			name: "api_url",
			secret: false,
			required: true,
			prompt: "BlueBubbles server (http://my-mac:1234)",
			pattern: "^https?://\\S+$",
			when: { name: "backend", is: "bluebubbles" },
		},
		{
			name: "password",
			secret: true,
			required: true,
			prompt: "BlueBubbles server password",
			when: { name: "backend", is: "bluebubbles" },
		},
		{
			name: "private_api",
			secret: false,
			required: false,
			prompt: "Use its private API",
			default: "false",
			pattern: "^(true|false)$",
			when: { name: "backend", is: "bluebubbles" },
		},
		{
			name: "webhook_secret",
			secret: true,
			required: false,
			prompt: "Secret for ?secret= of the webhook (empty: none)",
			when: { name: "backend", is: "bluebubbles" },
		},
		{
			name: "imsg_command",
			secret: false,
			required: false,
			prompt: "imsg as JSON-RPC",
			default: "imsg rpc",
			when: { name: "backend", is: "imsg" },
		},
		{ name: "name", secret: false, required: false, prompt: "What the agent is called in groups", default: "nexus" },
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	pace: () => ({ targetIntervalMs: 1000 }),
	open: (account, tools) => new IMessageSession(settingsOf(info, account), tools),
};
