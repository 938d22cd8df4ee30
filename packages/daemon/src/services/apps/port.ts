/** Applications: who they are, by which token, and the messages between them. */

import type { Cursor } from "../../bus/bus.ts";
import type { AppTokens } from "../../edge/edge.ts";
import type { Principal } from "../kit/principal.ts";

export interface AppInfo {
	id: string;
	name: string;
	createdAt: number;
	/** Since when its token is worth nothing. */
	revokedAt?: number;
}

export interface Applications extends AppTokens {
	/** Gets to know all of them: before that there is none. */
	load(): Promise<void>;
	/** Whether there is one of this name whose token is good. */
	has(id: string): boolean;
	/** Oldest first, removed ones included. */
	list(): AppInfo[];
	/** Returns the token, which is never shown again. Rejects with `conflict` for an application that exists, with `invalid` for an unusable name. */
	add(app: { id: string; name?: string }, principal: Principal): Promise<{ app: AppInfo; token: string }>;
	/** Its token is worth nothing from now on, and its streams end. What it made stays. */
	remove(id: string, principal: Principal): Promise<void>;
	close(): void;
}

export interface NewAppMessage {
	/** Empty: the caller's own. */
	from: string;
	to: string;
	subjectUserId?: string;
	messageType: string;
	payload: Uint8Array;
	requireAck: boolean;
	idempotencyKey?: string;
}

/** A recipient's report about a message, as its sender gets it. */
export interface Acknowledgement {
	/** Empty: the caller's own. */
	app: string;
	messageId: string;
	failed: boolean;
	reason?: string;
}

/** A record of a recipient's log, as JSON. */
export interface AppMessageRecord {
	event: "received" | "acked" | "failed";
	messageId: string;
	from: string;
	to: string;
	subjectUserId?: string;
	messageType: string;
	/** Base64; only when it was received. */
	payload?: string;
	requireAck: boolean;
	sentAt: number;
	at: number;
	reason?: string;
}

export interface AppMessages {
	/** Resolves once it is durable in its recipient's log. */
	send(message: NewAppMessage, principal: Principal): Promise<{ messageId: string }>;
	/** The sender hears of it once; said again, nothing happens. */
	acknowledge(acknowledgement: Acknowledgement, principal: Principal): Promise<void>;
	/** Opens an application's messages. `after` undefined: from now on; 0: from the earliest kept. Rejects with `expired` when that is gone. */
	open(app: string, after: number | undefined, principal: Principal): Promise<Cursor>;
}
