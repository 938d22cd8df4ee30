/** Pairings: the strangers on a public platform who asked for access, and those who were approved. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface Person {
	channel: string;
	account: string;
	/** The platform's id of the sender. */
	sender: string;
}

export interface Pairing extends Person {
	senderName?: string;
	/** The code that was sent to the sender; a person who runs the daemon approves it. */
	code: string;
	state: "pending" | "approved";
	/** Where messages to the sender go; the platform's own address. */
	target: Record<string, unknown>;
	createdAt: number;
	/** A code that is still pending then is worth nothing. */
	expiresAt: number;
	/** When the code was last sent to the sender. */
	sentAt: number;
	approvedAt?: number;
}

export interface Pairings {
	get(person: Person): Reading<Pairing | undefined>;
	byCode(code: string): Reading<Pairing | undefined>;
	/** Newest first. */
	list(): Reading<Pairing[]>;
	/** How many of an account wait for approval. */
	pending(channel: string, account: string): Reading<number>;
}

export interface PairingOps {
	/** One per person: saves it new or in place of the one before. A code that another person has is a conflict. */
	save(pairing: Pairing): void;
	/** Removes a person's pairing; a person without one is a conflict. */
	remove(person: Person): void;
	/** Removes the pending ones whose time is over. */
	expire(now: number): void;
}

export const pairingWrites = writesOf<PairingOps>("pairings", ["save", "remove", "expire"]);
