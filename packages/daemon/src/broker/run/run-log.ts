/** How a run is stored: the name of its chain on the Bus, its metadata for recovery, and its user messages. */

import type { StoredAttachment } from "../../ledger/inbox/port.ts";
import type { StoredMessage } from "../../ledger/turns/port.ts";

/** Metadata of a run's log. */
export interface RunMeta {
	session: string;
	engine: string;
	startedAt: number;
	/** The inbound events it answers; none when it continues another run. */
	events: { eventId: string }[];
	/** The run that it continues. */
	continues?: string;
}

/** All runs of a session, read as one log. */
export const chainOf = (session: string): string => `session:${session}`;

/** A user's message as the turn stores it. */
export const storedQuestion = (event: {
	eventId: string;
	text: string;
	attachments: readonly StoredAttachment[];
}): StoredMessage => ({
	role: "user",
	eventId: event.eventId,
	text: event.text,
	attachments: event.attachments.length > 0 ? [...event.attachments] : undefined,
});
