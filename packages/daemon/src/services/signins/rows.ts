/** Sign-ins: the browsers that the owner has let in, each until it expires or is signed out. */

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
	/** One that is not there, or was signed out before, is a conflict. */
	revoke(id: string, at: number): void;
	/** Removes those that ended before this time. */
	forget(before: number): void;
}

export const signInWrites = writesOf<SignInOps>("signins", ["add", "revoke", "forget"]);
