/** Idempotency: which request of an application, by the key that its caller chose, made what. So nothing is executed twice. */

import { type Reading, writesOf } from "../../std/write.ts";

/** So long a key is remembered; from then on it is a new one. */
export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60_000;

export interface IdempotencyClaim {
	appId: string;
	/** The caller's own. */
	key: string;
	/** Of the request's body: the same key with another body is a mistake. */
	digest: string;
	/** The id of what the first request made. */
	result: string;
	/** In milliseconds since the epoch. */
	at: number;
}

export interface IdempotencyRows {
	/** Who has the key at `now`. */
	find(appId: string, key: string, now: number): Reading<IdempotencyClaim | undefined>;
	/** Whether there are any from before a time. */
	isOlder(before: number): Reading<boolean>;
}

export interface IdempotencyOps {
	/** Commits with what the request makes. Refused as a duplicate while another has the key: of two at once, one is made. */
	claim(claim: IdempotencyClaim): void;
	/** Forgets the oldest of those from before a time, at most so many. */
	forget(before: number, claimsMax: number): void;
}

export const idempotencyWrites = writesOf<IdempotencyOps>("idempotency", ["claim", "forget"]);
