/** Which session a chat talks to: always the same label for the same place, and never the same for two places. */

import { createHash } from "node:crypto";
import { isSessionLabel, NexusError } from "@nexus-stream/protocol";

export interface ChatAddress {
	channel: string;
	account: string;
	chat: string;
	thread?: string;
	sender: string;
}

/** `chat`: one session per chat and thread. `sender`: one per person. Anything else is the label of the one session for all. */
export type SessionRule = string;

/** What a label may hold without being mistaken for the colons between its parts. */
const PLAIN = /^[A-Za-z0-9._@+-]+$/;
const LABEL_CHARS_MAX = 128;
const DIGEST_CHARS = 16;

export function sessionOf(rule: SessionRule, address: ChatAddress): string {
	if (rule !== "chat" && rule !== "sender") return rule;
	const { channel, account, chat, thread, sender } = address;
	const parts =
		rule === "chat"
			? [channel, account, chat, ...(thread === undefined ? [] : [thread])]
			: [channel, account, "from", sender];
	const label = parts.join(":");
	if (parts.every((part) => PLAIN.test(part)) && label.length <= LABEL_CHARS_MAX && isSessionLabel(label)) return label;
	// A part that cannot stand in a label is shown as far as it can, and told apart by a digest of the whole.
	const digest = createHash("sha256")
		.update(JSON.stringify([rule, ...parts]))
		.digest("hex")
		.slice(0, DIGEST_CHARS);
	const shown = label.replace(/[^A-Za-z0-9._:@+-]/g, "").replace(/^[^A-Za-z0-9]+/, "");
	return `${shown.slice(0, LABEL_CHARS_MAX - DIGEST_CHARS - 2) || "chat"}:-${digest}`;
}

/** Throws `config` for a label that cannot be one. */
export function checkSessionRule(rule: SessionRule, where: string): void {
	if (isSessionLabel(rule)) return;
	throw new NexusError(
		"config",
		`${where}: ${JSON.stringify(rule)} is not allowed; allowed: chat, sender, or the label of a session (letters, digits and . _ : @ + -)`,
	);
}
