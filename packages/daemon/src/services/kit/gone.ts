/** The error for an id that is not stored: retention removed it, as the time in the id shows, or it never existed. */

import { NexusError, timeOfId } from "@nexus-stream/protocol";

const HOUR_MS = 3_600_000;

/** Another application's id gives the same error, so that no caller learns whether it exists. */
export function gone(what: string, id: string, keptMs: number, now: number): NexusError {
	if ((timeOfId(id) ?? Infinity) > now - keptMs) return new NexusError("not_found", `there is no ${what} ${id}`);
	return new NexusError("expired", `a ${what} is kept for ${keptMs / HOUR_MS} hours; ${id} is older`);
}
