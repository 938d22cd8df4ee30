/** Rows of applications, which have their own tokens and see only what is theirs, and of receipts for the messages between them. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface App {
	/** The name that requests use: `app_id`. */
	id: string;
	/** For people. */
	name: string;
	/** SHA-256 of the token, in hexadecimal: the token itself is kept nowhere. */
	tokenHash: string;
	createdAt: number;
	/** Since when its token is worth nothing. */
	revokedAt?: number;
}

export interface AppRows {
	/** Oldest first, removed ones included. */
	list(): Reading<App[]>;
}

export interface AppOps {
	/** A new one, or a removed one with a new token. One whose token is good is a conflict, and so is more than `appsMax` of those. */
	add(app: Omit<App, "revokedAt">, limits: { appsMax: number }): void;
	/** Revokes the application's token; an unknown or already removed application is a conflict. */
	revoke(id: string, at: number): void;
}

export const appWrites = writesOf<AppOps>("apps", ["add", "revoke"]);

/** A message whose sender wants to know how it ended. */
export interface Receipt {
	messageId: string;
	from: string;
	to: string;
	subjectUserId?: string;
	messageType: string;
	sentAt: number;
	/** When its recipient said what became of it. */
	settledAt?: number;
}

export interface ReceiptRows {
	get(messageId: string): Reading<Receipt | undefined>;
}

export interface ReceiptOps {
	add(receipt: Omit<Receipt, "settledAt">): void;
	/** Settles a receipt; an unknown or settled one is a conflict, so that the sender gets one outcome. */
	settle(messageId: string, at: number): void;
	/** Removes those that were sent before this time. */
	forget(before: number): void;
}

export const receiptWrites = writesOf<ReceiptOps>("receipts", ["add", "settle", "forget"]);
