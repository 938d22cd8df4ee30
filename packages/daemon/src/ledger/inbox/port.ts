/** The inbox: every inbound event with what became of it. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredAttachment {
	name: string;
	contentType: string;
	data: string;
}

/** The outcome of an inbound message (I10). */
export type Disposition =
	| { state: "started"; runId: string }
	| { state: "queued" }
	/** It is one of several that a run answers together. */
	| { state: "batched"; runId: string }
	/** It came during the run, and its engine was handed it; where, the run's log says. */
	| { state: "injected"; runId: string }
	/** A newer event took its place: its run was stopped for it, or it was summarised into it. */
	| { state: "superseded"; by: string; runId?: string }
	| { state: "rejected"; because: string }
	/** It decided what a run waits for, or tried to. */
	| { state: "answered"; because: string }
	/** It had been accepted, and had to make room. */
	| { state: "dropped"; because: string }
	/** It was cancelled on request before its run began. */
	| { state: "cancelled" }
	/** It was no question to the agent: a command, which was carried out. */
	| { state: "handled"; because: string };

/** Where an inbound message came from. */
export interface Origin {
	channel: string;
	account: string;
	/** The platform's id of the message: the same message redelivered has the same. */
	sourceId?: string;
	/** The author, as the platform names them. */
	sender: string;
	senderName?: string;
}

/** How a session takes messages while it is busy. */
export interface QueueSettings {
	/**
	 * `followup`: one after another. `interrupt`: stop the run, then answer everything that waits together. `collect`: wait until nothing
	 * more comes, then answer together. `reject`: refuse. `inject`: hand it to the run, or let it follow when that takes nothing more.
	 */
	mode: "interrupt" | "followup" | "collect" | "reject" | "inject";
	/** The mode that replaces `inject` with an engine that cannot take messages during a run. */
	fallback?: Exclude<QueueSettings["mode"], "inject">;
	/** `interrupt`: the session starts over without the stopped turn in the context. */
	rollback?: boolean;
	/** `collect`: how long nothing more has to come. */
	collectMs: number;
	/** How many may wait. */
	messagesMax: number;
	/** Chooses the message that gives way when the queue is full and one more comes. */
	atCap: "drop_oldest" | "drop_newest" | "summarise";
}

export interface InboundEvent {
	eventId: string;
	session: string;
	text: string;
	attachments: StoredAttachment[];
	idempotencyKey?: string;
	receivedAt: number;
	disposition: Disposition;
	origin?: Origin;
	/** How it is to wait, should it have to. */
	queue?: QueueSettings;
	/** A synthetic event: the original events it stands for, oldest first. */
	batch?: string[];
	/** The caller's trace: the run that answers it is a part of it. */
	traceId?: string;
	/** Facts that the pipeline knows about the message; a JSON object. */
	facts?: Record<string, unknown>;
}

export interface EventQuery {
	session?: string | undefined;
	state?: Disposition["state"] | undefined;
	channel?: string | undefined;
	limit: number;
	/** Only events recorded before this one. */
	before?: string | undefined;
}

export interface StoredInbox {
	get(eventId: string): Reading<InboundEvent | undefined>;
	byKey(session: string, idempotencyKey: string): Reading<InboundEvent | undefined>;
	bySource(channel: string, account: string, sourceId: string): Reading<InboundEvent | undefined>;
	/** Newest first. */
	list(query: EventQuery): Reading<InboundEvent[]>;
	/** Events that joined the run while it was under way, oldest first. */
	joined(session: string, runId: string): Reading<InboundEvent[]>;
	/** The newest of a session that was handled as this and came before an event. */
	handled(session: string, as: string, before: string): Reading<InboundEvent | undefined>;
	/** The authors of these events, as far as they are on record. */
	authors(eventIds: readonly string[]): Reading<Pick<InboundEvent, "eventId" | "origin" | "facts">[]>;
	/** Accepted, not started, oldest first; of one session or of all. */
	queued(session?: string): Reading<InboundEvent[]>;
	/** The queued ones whose daemon is dead, oldest first. */
	orphaned(): Reading<InboundEvent[]>;
}

export interface InboxOps {
	/** Records an event; it is a duplicate when the session already has its idempotency key, or the account its source id. */
	accept(event: InboundEvent): void;
	/** Changes what became of an event that is in one of the expected states (ST10). */
	dispose(eventId: string, disposition: Disposition, expected: readonly Disposition["state"][]): void;
	/** Forgets rejected events but the newest `keep`: strangers must not be able to fill the disk. */
	forgetRejected(keep: number): void;
	/** Makes queued events of dead daemons this one's (ST19). */
	adopt(eventIds: readonly string[]): void;
}

const writes = writesOf<InboxOps>("inbox", ["accept", "dispose", "forgetRejected", "adopt"]);

/** The Bus topic that wakes a caller waiting for the message's turn. */
export const disposedCall = (eventId: string): string => `inbox:${eventId}`;

export const inboxWrites: typeof writes = {
	...writes,
	dispose: (eventId, ...rest) => ({ ...writes.dispose(eventId, ...rest), topic: disposedCall(eventId) }),
};
