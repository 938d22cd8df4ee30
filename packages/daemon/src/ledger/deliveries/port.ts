/**
 * Deliveries: how far each (run, account, target) has come on its platform. After a crash the daemon computes from these rows what is still to be
 * sent (I7).
 */

import type { DeliveryMode, DeliveryState } from "@nexus-stream/protocol";
import { type Reading, writesOf } from "../../std/write.ts";

/** The platform's own address; a JSON object. */
export interface DeliveryTarget {
	to: string;
	[extra: string]: unknown;
}

export interface DeliveryMessage {
	/** 1, 2, 3 … in order of being announced. */
	ordinal: number;
	nonce: string;
	/** Source positions of its text: UTF-16 units of the answer's text. */
	from: number;
	to?: number;
	messageId?: string;
	/**
	 * `intended`: about to be created, so it may exist. `open`: exists and is being edited. `failed`: the platform had taken it, and did not
	 * bring it to its reader.
	 */
	state: "intended" | "open" | "sent" | "unknown" | "failed";
	/** Why it failed. */
	error?: string;
	/** The source position up to which an open message was last reported to show. */
	shown?: number;
	/** It was left as it was when its stream failed: it shows the text up to `to`, and perhaps which tools ran. */
	abandoned?: true;
	/** How often it was changed after it had been created; absent = never. */
	edits?: number;
	/** Text of a send whose outcome is still unknown: the send is looked up, or repeated, with exactly this text. */
	text?: string;
	/** How much of `text`, in UTF-16 units, is out in the messages before this one. */
	done?: number;
	/** Facts about the run that are sent with `text`, and repeated with it. */
	facts?: Readonly<Record<string, unknown>>;
}

export interface NewDelivery {
	id: string;
	/** The log that is delivered. */
	runId: string;
	channel: string;
	account: string;
	target: DeliveryTarget;
	/** Choices that hold for the whole delivery; a JSON object. */
	options: Record<string, unknown>;
	createdAt: number;
}

export interface Delivery extends NewDelivery {
	/** Chosen once, when the delivery begins; a stream that fails continues as blocks. */
	mode?: DeliveryMode;
	state: DeliveryState;
	/** Everything before this source position is in finished messages. */
	cursor: number;
	/** Text that the next message has to begin with. */
	carry?: string;
	error?: string;
	/** Last progress. */
	updatedAt: number;
	endedAt?: number;
	messages: DeliveryMessage[];
}

export interface DeliveryQuery {
	runId?: string;
	state?: DeliveryState;
	channel?: string;
	account?: string;
	/** Newest first, at most this many. */
	limit: number;
	/** Only deliveries with ids before this one, which need not be here: ids are in the order of time. */
	before?: string;
	/** Ids of deliveries that are left out. */
	except?: readonly string[];
}

export type DeliveryCounts = Record<DeliveryState, number>;

export interface MessageAddress {
	channel: string;
	account: string;
	messageId: string;
	nonce?: string;
}

export interface Deliveries {
	get(id: string): Reading<Delivery | undefined>;
	list(query: DeliveryQuery): Reading<Delivery[]>;
	/** The unfinished ones whose daemon is dead, oldest first. */
	orphaned(): Reading<Delivery[]>;
	/** How many of an account are in which state. */
	counts(channel: string, account: string): Reading<DeliveryCounts>;
	/** The delivery with a message of this id or nonce, the newest if there are several. */
	ofMessage(place: MessageAddress): Reading<{ delivery: Delivery; nonce: string } | undefined>;
}

/** A message that a platform had accepted and did not deliver. */
export interface MissedMessage {
	messageId: string;
	error: string;
}

/** The daemon that runs a delivery applies the rules of its messages; the store keeps the result. A delivery or nonce that is not there is a conflict. */
export interface DeliveryOps {
	/** The same run, account and target is a duplicate, in whatever order the target's fields are. */
	open(delivery: NewDelivery): void;
	setMode(id: string, mode: DeliveryMode, now: number): void;
	/** Stores a message as it is now, by its nonce, and how far the delivery has come: neither the cursor nor the time of the last progress goes back. */
	put(id: string, message: DeliveryMessage, progress: Pick<Delivery, "cursor" | "carry">, now: number): void;
	/** Removes a message that is not finished. */
	drop(id: string, nonce: string, now: number): void;
	/**
	 * The platform had taken the message, and did not bring it to its reader: a delivery that was complete is not. A message that is not finished yet
	 * is failed when it is.
	 */
	failed(id: string, nonce: string, missed: MissedMessage, now: number): void;
	finish(id: string, state: Exclude<DeliveryState, "active">, error: string | undefined, now: number): void;
	/** Makes an ended delivery active again, from where it stopped, and the committing daemon its owner: the rest was requested. */
	reopen(id: string, now: number): void;
	/** Makes unfinished deliveries of dead daemons this one's (ST19). */
	adopt(ids: readonly string[]): void;
}

export const deliveryWrites = writesOf<DeliveryOps>("deliveries", [
	"open",
	"setMode",
	"put",
	"drop",
	"failed",
	"finish",
	"reopen",
	"adopt",
]);
