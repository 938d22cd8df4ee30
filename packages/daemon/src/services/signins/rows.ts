/** Rows of sign-ins: each browser in which the owner signed in, until the sign-in expires or the owner signs out. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface StoredSignIn {
	id: string;
	/** From where. */
	address: string;
	createdAt: number;
	expiresAt: number;
	/** When it was signed out. */
	revokedAt?: number;
}

export interface SignInRows {
	/** Oldest first. */
	list(): Reading<StoredSignIn[]>;
}

export interface SignInOps {
	add(signIn: Omit<StoredSignIn, "revokedAt">): void;
	/** An unknown sign-in, or one that was signed out before, is a conflict. */
	revoke(id: string, at: number): void;
	/** Removes those that ended before this time. */
	forget(before: number): void;
}

export const signInWrites = writesOf<SignInOps>("signins", ["add", "revoke", "forget"]);
