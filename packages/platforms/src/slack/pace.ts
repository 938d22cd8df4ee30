/** How fast a message may grow: Slack counts calls by method for the whole workspace, so the chats that are being written to share them. */

import type { Pace } from "@nexus-stream/adapter";

/** chat.update: more than 50 a minute. */
const EDIT_MS = 1200;
/** chat.appendStream: more than 100 a minute. */
const APPEND_MS = 600;
/** A chat that was written to this recently counts. */
const ACTIVE_MS = 10_000;

export const paceOf = (style: "append" | "edit", chats: number): Pace => ({
	targetIntervalMs: (style === "append" ? APPEND_MS : EDIT_MS) * Math.max(1, chats),
});

/** Which chats are being written to. */
export function createActivity(): { touch(chat: string, now: number): void; count(chat: string, now: number): number } {
	const last = new Map<string, number>();
	const forget = (now: number) => {
		// In the order of their last write.
		for (const [chat, at] of last) {
			// Either way: the clock may have been set back since.
			if (Math.abs(now - at) < ACTIVE_MS) return;
			last.delete(chat);
		}
	};
	return {
		touch(chat, now) {
			last.delete(chat);
			last.set(chat, now);
			forget(now);
		},
		/** `chat` is about to be one of them. */
		count(chat, now) {
			forget(now);
			return last.has(chat) ? last.size : last.size + 1;
		},
	};
}
