/** iMessage through a Mac: blocks, because without Apple's private interfaces nothing that was sent can be changed. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS, IS_BOOLEAN } from "@nexus-stream/adapter/platform/platform";
import { CHANNEL_BLOCKS } from "../channels.ts";
import { IMessageSession } from "./session.ts";

const BLUEBUBBLES = { name: "backend", is: "bluebubbles" };

export const platform = definePlatform({
	info: {
		channel: "imessage",
		supports: ["monitor", "send", "health", "attachments", "webhook"],
		limits: { textMax: 10_000, unit: "utf16" },
		blocks: CHANNEL_BLOCKS.imessage,
		// The Mac keeps what was sent.
		reconcile: "history",
		webhook: { requiredQuery: ["secret"] },
		public: true,
		settings: [
			{ name: "backend", prompt: "bluebubbles or imsg", default: "bluebubbles", pattern: "^(bluebubbles|imsg)$" },
			{
				name: "api_url",
				required: true,
				prompt: "BlueBubbles server (http://my-mac:1234)",
				pattern: IS_ADDRESS,
				when: BLUEBUBBLES,
			},
			{
				name: "password",
				secret: true,
				required: true,
				prompt: "BlueBubbles server password",
				when: BLUEBUBBLES,
			},
			{
				name: "private_api",
				prompt: "Use its private API",
				default: "false",
				pattern: IS_BOOLEAN,
				when: BLUEBUBBLES,
			},
			{
				name: "webhook_secret",
				secret: true,
				prompt: "Secret for ?secret= of the webhook (empty: none)",
				when: BLUEBUBBLES,
			},
			{ name: "imsg_command", prompt: "imsg as JSON-RPC", default: "imsg rpc", when: { name: "backend", is: "imsg" } },
			{ name: "name", prompt: "What the agent is called in groups", default: "nexus" },
		],
	},
	pace: () => ({ targetIntervalMs: 1000 }),
	open: (settings, tools) => new IMessageSession(settings, tools),
});
