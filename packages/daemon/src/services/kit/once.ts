/** Nothing is executed twice: the same idempotency key of an application gives what its first request made (24 hours). */

import { createHash } from "node:crypto";
import { NexusError, Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Write } from "../../std/write.ts";
import type { IdempotencyRows } from "./rows.ts";
import { type IdempotencyClaim, idempotencyWrites } from "./rows.ts";

/** In UTF-8. */
const KEY_BYTES_MAX = 256;

/** Throws `invalid` for a key that is too long. */
export function checkKey(key = ""): void {
	if (Buffer.byteLength(key) > KEY_BYTES_MAX)
		throw new NexusError("invalid", `an idempotency key has at most ${KEY_BYTES_MAX} bytes`);
}

export interface OnceRequest {
	appId: string;
	/** Left out or empty: every request makes something new. */
	key?: string | undefined;
	/** The request as JSON. The same key with another body is refused. */
	body: unknown;
	/** The id that is given to what is made, if this is the first. */
	result: string;
}

/**
 * Calls `begin` unless the key was used before; its writes have to commit with the beginning of what is made. Resolves with the id of what
 * the first request made. Rejects with `invalid` (IDEMPOTENCY_CONFLICT) when that one had another body.
 */
export async function once(
	{ rows, clock }: { rows: { idempotency: IdempotencyRows }; clock: Pick<Clock, "now"> },
	request: OnceRequest,
	begin: (claim: readonly Write[]) => Promise<unknown>,
): Promise<{ id: string; isFirst: boolean }> {
	const { appId, key = "", body, result } = request;
	if (key === "") {
		await begin([]);
		return { id: result, isFirst: true };
	}
	checkKey(key);
	const digest = digestOf(body);
	const first = async () => {
		const known = await rows.idempotency.find(appId, key, clock.now());
		return known && { id: sameRequest(known, digest), isFirst: false };
	};
	const known = await first();
	if (known) return known;
	try {
		await begin([idempotencyWrites.claim({ appId, key, digest, result, at: clock.now() })]);
		return { id: result, isFirst: true };
	} catch (cause) {
		const winner = cause instanceof Refused && cause.refusal === "duplicate" ? await first() : undefined;
		if (!winner) throw cause;
		return winner;
	}
}

function sameRequest({ key, digest, result }: IdempotencyClaim, wanted: string): string {
	if (digest === wanted) return result;
	throw new NexusError("invalid", `the idempotency key ${key} was used for another request: choose a new one`, {
		reason: "IDEMPOTENCY_CONFLICT",
	});
}

const digestOf = (body: unknown): string => createHash("sha256").update(canonicalJson(body)).digest("base64url");

/** The same text for the same JSON, whatever the order of its keys. */
export const canonicalJson = (value: unknown): string =>
	JSON.stringify(value, (_, each: unknown) =>
		typeof each === "object" && each !== null && !Array.isArray(each)
			? Object.fromEntries(Object.entries(each).toSorted(([left], [right]) => (left < right ? -1 : 1)))
			: each,
	) ?? "";
