/** Grants: approvals that a person has given for the rest of a session. */

import { type Reading, writesOf } from "../../std/write.ts";

export interface Grant {
	id: string;
	session: string;
	/** For whom: the only sender of the run that was approved. */
	channel: string;
	account: string;
	sender: string;
	agent?: string;
	tool: string;
	/** Hash of the approved arguments; left out where a prefix is granted. */
	digest?: string;
	/** A configured beginning of the command: every plain command that begins with it. */
	prefix?: string;
	/** The person who granted it, as shown to readers. */
	by: string;
	createdAt: number;
}

export interface Grants {
	/** Newest first. */
	list(): Reading<Grant[]>;
}

export interface GrantOps {
	save(grant: Grant): void;
	/** Removes a grant; an unknown id is a conflict. */
	revoke(id: string): void;
}

export const grantWrites = writesOf<GrantOps>("grants", ["save", "revoke"]);
