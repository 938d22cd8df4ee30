/**
 * A whole adapter with the kit: a chat is a folder, a message is a file in it. Lines, drafts, splitting, pacing and resuming are the kit's.
 *
 *   nexus conformance -- node examples/adapter.ts
 */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Platform, serve, type Target } from "../src/adapter/kit/kit.ts"; // in your own project: from "nexus-stream/adapter"

const root = process.env.NEXUS_FOLDER ?? "messages";

function fileOf({ to }: Target, message: string): string {
	const chat = join(root, `chat-${encodeURIComponent(to)}`);
	mkdirSync(chat, { recursive: true });
	return join(chat, `${message}.md`);
}

const platform: Platform = {
	info: {
		channel: "folder",
		version: "1",
		protocol: 1,
		supports: ["send", "stream", "health"],
		fields: ["runId", "offset", "intent"],
		limits: { textMax: 2000, unit: "utf16" },
		reconcile: "nonce",
		settings: [],
	},
	render: (markdown) => markdown,
	measure: (text) => text.length,
	pace: () => ({ targetIntervalMs: 200 }),
	open: () => ({
		// The nonce names the file: the same message written twice is one message.
		async create(target, text, { nonce }) {
			writeFileSync(fileOf(target, nonce), text);
			return { messageId: nonce };
		},
		async edit(target, messageId, text) {
			writeFileSync(fileOf(target, messageId), text);
		},
		async find(target, nonce) {
			return existsSync(fileOf(target, nonce)) ? { messageId: nonce } : undefined;
		},
		health: async () => ({ ok: true, detail: `writes to ${root}` }),
	}),
};

await serve(platform, process.argv.slice(2));
