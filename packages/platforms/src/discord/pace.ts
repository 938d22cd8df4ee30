/** How fast a channel may be written to, learned from the bucket headers of the last answers. */

import type { Pace } from "@nexus-stream/adapter";

/** Faster edits are not seen as steadier. */
const FLOOR_MS = 300;
/** 50 calls a second, all channels together. */
const ACCOUNT_INTERVAL_MS = 20;

/** The rate-limit bucket of a route, from the last response. */
export interface Bucket {
	readonly remaining: number;
	readonly readAt: number;
	readonly resetAt: number;
}

/** Undefined: the answer says nothing. */
export function readBucket(headers: Headers, now: number): Bucket | undefined {
	const remaining = headers.get("x-ratelimit-remaining");
	const resetAfter = headers.get("x-ratelimit-reset-after");
	if (remaining === null || resetAfter === null) return undefined;
	return { remaining: Number(remaining), readAt: now, resetAt: now + Number(resetAfter) * 1000 };
}

/** Spreads what is left over the time until the bucket is full again; one call is kept for a final, which does not wait. */
function intervalOf(bucket: Bucket | undefined, now: number): number {
	if (!bucket) return FLOOR_MS;
	// A clock that was set back makes it no longer than the platform said.
	const leftMs = bucket.resetAt - Math.max(now, bucket.readAt);
	// It lasts until the bucket is full again, and one is left then.
	if (leftMs <= bucket.remaining * FLOOR_MS) return FLOOR_MS;
	return Math.max(FLOOR_MS, leftMs / Math.max(1, bucket.remaining - 1));
}

/** Creating and editing have buckets of their own. Creations are rare: their bucket counts only once it is used up. */
export function paceOf(edits: Bucket | undefined, creations: Bucket | undefined, now: number): Pace {
	const isUsedUp = creations !== undefined && creations.remaining === 0;
	const intervals = [intervalOf(edits, now), isUsedUp ? intervalOf(creations, now) : 0];
	return { targetIntervalMs: Math.max(FLOOR_MS, ...intervals), accountIntervalMs: ACCOUNT_INTERVAL_MS };
}
