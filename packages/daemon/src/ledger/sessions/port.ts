/** Sessions: the conversations there are. They come of accepted events and settled turns, and have no writes of their own. */

import type { Reading } from "../../std/write.ts";

export interface SessionInfo {
	session: string;
	createdAt: number;
	updatedAt: number;
	turns: number;
	/** How often one of its turns was changed after it had settled. */
	revision: number;
	/** The beginning of the first message that was answered; empty until then. */
	title: string;
	/** Where its first message came from; left out for one that is older than origins are. */
	origin?: SessionOrigin;
}

export interface SessionOrigin {
	channel: string;
	account: string;
	sender: string;
	senderName?: string;
	/** Facts that the pipeline knows about the chat; a JSON object. */
	chat?: Record<string, unknown>;
}

export interface StoredSessions {
	get(label: string): Reading<SessionInfo | undefined>;
	/** Most recently used first; more than `limit` when the last of them were used at the same moment, so that `before` skips none. */
	list(query: { limit: number; before?: number }): Reading<SessionInfo[]>;
}
