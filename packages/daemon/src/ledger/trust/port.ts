/** Trust: the owner's word that everything in a session's history may act with the rights of the sender of a run. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface Trusts {
	/** Undefined: the owner has not said it of this session. */
	get(session: string): Reading<boolean | undefined>;
}

export interface TrustOps {
	set(session: string, trusted: boolean, at: number): void;
}

export const trustWrites = writesOf<TrustOps>("trust", ["set"]);
