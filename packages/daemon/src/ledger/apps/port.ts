/** Applications: programs with a token of their own, which see only what is theirs. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface App {
	/** What requests call it: `app_id`. */
	id: string;
	/** For people. */
	name: string;
	/** SHA-256 of the token, in hexadecimal: the token itself is kept nowhere. */
	tokenHash: string;
	createdAt: number;
	/** Since when its token is worth nothing. */
	revokedAt?: number;
}

export interface Apps {
	/** Oldest first, removed ones included. */
	list(): Reading<App[]>;
}

export interface AppOps {
	/** A new one, or a removed one with a new token. One whose token is good is a conflict, and so is more than `appsMax` of those. */
	add(app: Omit<App, "revokedAt">, limits: { appsMax: number }): void;
	/** One that is not there, or was removed before, is a conflict. */
	revoke(id: string, at: number): void;
}

export const appWrites = writesOf<AppOps>("apps", ["add", "revoke"]);
