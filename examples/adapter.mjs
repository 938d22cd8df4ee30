// @ts-check
/**
 * A whole adapter with the kit: a chat is a folder, a message is a file in it. Lines, drafts, splitting, pacing and resuming are the kit's.
 *
 *   nexus conformance -- node examples/adapter.mjs      (in a checkout, after `npm run build`)
 */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { definePlatform, serve } from "@nexus-stream/adapter";

const root = process.env.NEXUS_FOLDER ?? "messages";

/**
 * @param {import("@nexus-stream/adapter").Target} target
 * @param {string} message
 */
function fileOf({ to }, message) {
	const chat = join(root, `chat-${encodeURIComponent(to)}`);
	mkdirSync(chat, { recursive: true });
	return join(chat, `${message}.md`);
}

const platform = definePlatform({
	info: {
		channel: "folder",
		supports: ["send", "stream", "health"],
		limits: { textMax: 2000, unit: "utf16" },
		reconcile: "nonce",
		settings: [],
	},
	render: (markdown) => markdown,
	pace: () => ({ targetIntervalMs: 200 }),
	open: () => ({
		// The nonce names the file: the same message written twice is one message.
		async create(target, text, { nonce }) {
			writeFileSync(fileOf(target, nonce), text);
			return { messageId: nonce };
		},
		editing: {
			async edit(target, messageId, text) {
				writeFileSync(fileOf(target, messageId), text);
			},
		},
		async find(target, nonce) {
			return existsSync(fileOf(target, nonce)) ? { messageId: nonce } : undefined;
		},
		health: async () => ({ ok: true, detail: `writes to ${root}` }),
	}),
});

await serve(platform, process.argv.slice(2));
