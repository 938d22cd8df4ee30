/** Receipts: messages between applications whose sender wants to know what became of them. */

import { type Reading, writesOf } from "../../std/write.ts";

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

export interface Receipts {
	get(messageId: string): Reading<Receipt | undefined>;
}

export interface ReceiptOps {
	add(receipt: Omit<Receipt, "settledAt">): void;
	/** One that is not there, or is settled, is a conflict: the sender hears of it once. */
	settle(messageId: string, at: number): void;
	/** Removes those that were sent before this time. */
	forget(before: number): void;
}

export const receiptWrites = writesOf<ReceiptOps>("receipts", ["add", "settle", "forget"]);
